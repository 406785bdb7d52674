# Included before project(): prefers clang 22 where it is installed and nobody chose a compiler
# (it builds MLIR-heavy files in about half of g++'s time), and ccache in front of it.
if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX} AND NOT CMAKE_TOOLCHAIN_FILE)
  find_program(HEDDLE_CLANGXX clang++-22)
  find_program(HEDDLE_CLANG clang-22)
  if(HEDDLE_CLANGXX AND HEDDLE_CLANG)
    set(CMAKE_CXX_COMPILER ${HEDDLE_CLANGXX} CACHE FILEPATH "C++ compiler")
    set(CMAKE_C_COMPILER ${HEDDLE_CLANG} CACHE FILEPATH "C compiler")
  endif()
endif()

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HEDDLE_CCACHE ccache)
  if(HEDDLE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER sh ${CMAKE_CURRENT_LIST_DIR}/cached-compile.sh ${CMAKE_SOURCE_DIR} ${HEDDLE_CCACHE})
  endif()
endif()
