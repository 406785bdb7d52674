# How everything is compiled and linked: optimised unless told otherwise, lld 22 where it is (a
# relink against MLIR takes under a second), the C++ run time inside the binary for HEDDLE_STATIC.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

option(HEDDLE_LLD "link with lld where it is installed" ON)
if(HEDDLE_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_program(HEDDLE_LLD_PROGRAM NAMES ld.lld-22 ld.lld)
  if(HEDDLE_LLD_PROGRAM)
    add_link_options(-fuse-ld=lld)
    set(HEDDLE_FOLD_FUNCTIONS -Wl,--icf=safe) # equal ones, whose addresses nobody compares, lie in a file once
  endif()
endif()

set(HEDDLE_STATIC_LINK_OPTIONS -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -Wl,--strip-all)
if(HEDDLE_STATIC)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(${HEDDLE_STATIC_LINK_OPTIONS})
endif()
