# heddle_use_pch(<target> <kind>): compiles a target at the level of its kind, against that kind's shared precompiled header:
#   mlir          -O3  MLIR's headers: dialect/ and what computes
#   pattern       -O1  and the dialect's: code that arranges what others compute, where -O3 is half of the time to build it
#   pattern_test  -O0  and doctest: tests that compute next to nothing themselves
#   plain         -O1  the standard library: layers without MLIR that arrange
#   plain_test    -O0  and doctest
# A header is valid for one level only. The flags of the target must otherwise be those of the project: a target with its own
# -fno-rtti, -fno-exceptions or -D that MLIR's headers read must not use it. Executables are compiled with -fPIC instead of
# -fPIE, because a precompiled header is valid for one of the two only.
option(HEDDLE_PCH "use precompiled headers" ON)

set(HEDDLE_LEVEL_pattern -O1)
set(HEDDLE_LEVEL_pattern_test -O0)
set(HEDDLE_LEVEL_plain -O1)
set(HEDDLE_LEVEL_plain_test -O0)

set(HEDDLE_HEADERS_plain
  <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstdio> <cstring> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <string> <string_view> <utility> <vector>
  <runtime/Core/KernelRecord.h> <runtime/Core/LaunchPlan.h>)
set(HEDDLE_HEADERS_test <doctest/doctest.h> <filesystem> <fstream> <random> <thread>)
set(HEDDLE_HEADERS_plain_test ${HEDDLE_HEADERS_plain} ${HEDDLE_HEADERS_test})
set(HEDDLE_HEADERS_mlir
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
set(HEDDLE_HEADERS_pattern ${HEDDLE_HEADERS_mlir} ${HEDDLE_HEADERS_plain}
  <dialect/Analysis/PatternAnalysis.h> <dialect/Geometry/Counts.h>)
set(HEDDLE_HEADERS_pattern_test ${HEDDLE_HEADERS_pattern} ${HEDDLE_HEADERS_test})

function(heddle_use_pch target kind)
  heddle_set_level(${target} ${kind})
  if(NOT HEDDLE_PCH)
    return()
  endif()
  if(NOT TARGET heddle_${kind}_pch)
    heddle_add_pch(${kind})
  endif()
  heddle_pch_flags(${target})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM heddle_${kind}_pch)
endfunction()

function(heddle_set_level target kind)
  if(DEFINED HEDDLE_LEVEL_${kind})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${HEDDLE_LEVEL_${kind}}>)
  endif()
endfunction()

function(heddle_add_pch kind)
  set(header heddle_${kind}_pch)
  file(WRITE ${CMAKE_BINARY_DIR}/${header}.cpp.in "// The precompiled header needs a file to belong to.\n")
  configure_file(${CMAKE_BINARY_DIR}/${header}.cpp.in ${CMAKE_BINARY_DIR}/${header}.cpp COPYONLY)
  add_library(${header} OBJECT ${CMAKE_BINARY_DIR}/${header}.cpp)
  target_precompile_headers(${header} PRIVATE ${HEDDLE_HEADERS_${kind}})
  heddle_pch_flags(${header})
  heddle_set_level(${header} ${kind})
  if(kind MATCHES "^pattern")
    add_dependencies(${header} heddle_attn_tablegen)
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
