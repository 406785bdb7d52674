# heddle_use_mlir_pch(<target>): compiles a target against one shared precompiled header of the
# MLIR headers that nearly every file of dialect/, codegen/ and compiler/ needs anyway.
# The flags of the target must be those of the project: a target with its own -fno-rtti,
# -fno-exceptions or -D that MLIR's headers read must not use it. Executables are compiled with
# -fPIC instead of -fPIE, because a precompiled header is valid for one of the two only.
option(HEDDLE_PCH "use a precompiled header for the MLIR headers" ON)

function(heddle_use_mlir_pch target)
  heddle_reuse_mlir_pch(${target} heddle_mlir_pch)
endfunction()

# The same for code that computes next to nothing: built at -O0, in half the time. A header is valid for one level only.
function(heddle_use_unoptimised_mlir_pch target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  heddle_reuse_mlir_pch(${target} heddle_unoptimised_mlir_pch)
endfunction()

function(heddle_reuse_mlir_pch target header)
  if(NOT HEDDLE_PCH)
    return()
  endif()
  if(NOT TARGET ${header})
    heddle_add_mlir_pch(${header})
  endif()
  heddle_pch_flags(${target})
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${header})
endfunction()

function(heddle_add_mlir_pch header)
  file(WRITE ${CMAKE_BINARY_DIR}/${header}.cpp.in "// The precompiled header needs a file to belong to.\n")
  configure_file(${CMAKE_BINARY_DIR}/${header}.cpp.in ${CMAKE_BINARY_DIR}/${header}.cpp COPYONLY)
  add_library(${header} OBJECT ${CMAKE_BINARY_DIR}/${header}.cpp)
  target_precompile_headers(${header} PRIVATE
    <algorithm> <cstdint> <functional> <memory> <optional> <string> <utility> <vector>
    <llvm/ADT/STLExtras.h> <llvm/ADT/SmallVector.h> <llvm/ADT/StringRef.h> <llvm/ADT/TypeSwitch.h>
    <llvm/Support/raw_ostream.h>
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Dialect/MemRef/IR/MemRef.h> <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/IR/Builders.h> <mlir/IR/BuiltinAttributes.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h>
    <mlir/IR/Diagnostics.h> <mlir/IR/DialectImplementation.h> <mlir/IR/MLIRContext.h>
    <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h>
    <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h>
    <mlir/Pass/Pass.h>)
  heddle_pch_flags(${header})
  if(header STREQUAL "heddle_unoptimised_mlir_pch")
    target_compile_options(${header} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
endfunction()

# Without the time stamp clang's header is byte-identical after a rebuild, so ccache can serve
# what includes it.
function(heddle_pch_flags target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  else()
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
