# The component heddle_wheel: what the Python package holds beside its modules. With LLVM 22 on the machine that is libheddle.so
# and bin/heddle, else libheddle_runtime.so; -DHEDDLE_COMPILER=ON or OFF says it outright.

# heddle_wheel_default(<variable>): whether a wheel gets the compiler when nobody said so.
function(heddle_wheel_default variable)
  find_program(HEDDLE_LLVM_CONFIG NAMES llvm-config-22)
  if(HEDDLE_LLVM_CONFIG)
    execute_process(COMMAND ${HEDDLE_LLVM_CONFIG} --prefix OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(prefix AND EXISTS ${prefix}/lib/cmake/mlir/MLIRConfig.cmake)
    set(${variable} ON PARENT_SCOPE)
    message(STATUS "heddle wheel: with the compiler (LLVM 22 in ${prefix})")
  else()
    set(${variable} OFF PARENT_SCOPE)
    message(STATUS "heddle wheel: the runtime alone, no LLVM and MLIR 22 here")
  endif()
endfunction()

# A wheel holds no links, so the one file has the name that programs ask for, libheddle.so.0.
function(heddle_install_wheel)
  set(library heddle_runtime_shared)
  if(TARGET heddle_shared)
    set(library heddle_shared)
    install(TARGETS heddle RUNTIME DESTINATION heddle/bin COMPONENT heddle_wheel)
  endif()
  install(PROGRAMS $<TARGET_FILE:${library}> DESTINATION heddle/lib RENAME $<TARGET_SONAME_FILE_NAME:${library}> COMPONENT heddle_wheel)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/patterns DESTINATION heddle COMPONENT heddle_wheel FILES_MATCHING PATTERN *.mlir)
  install(FILES ${PROJECT_SOURCE_DIR}/runtime/Include/heddle.h ${PROJECT_SOURCE_DIR}/runtime/Include/heddle_arena.h
    ${PROJECT_SOURCE_DIR}/runtime/Include/heddle_stats.h ${PROJECT_SOURCE_DIR}/compiler/Library/heddle_compiler.h
    DESTINATION heddle/include COMPONENT heddle_wheel) # _structs.py reads them
  add_custom_target(heddle_wheel DEPENDS ${library} $<TARGET_NAME_IF_EXISTS:heddle>)
endfunction()
