# Unit tests of codegen/Emit and codegen/Cpu. heddle_pattern_test_support is for every layer that
# wants to run emitted text on the host or to compare ranges and outputs with a plain rule.
add_library(heddle_pattern_test_support STATIC
  ${CMAKE_SOURCE_DIR}/tests/unit/support/AttentionCase.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/HandPatterns.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/HostCompiler.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/HostPattern.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/ModuleLoader.cpp)
target_include_directories(heddle_pattern_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests/unit)
list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " HEDDLE_HOST_LAUNCHER)
target_compile_definitions(heddle_pattern_test_support PRIVATE HEDDLE_HOST_CXX="${CMAKE_CXX_COMPILER}"
  HEDDLE_HOST_COMPILE="${HEDDLE_HOST_LAUNCHER} ${CMAKE_CXX_COMPILER}" HEDDLE_HOST_FOLDER="${CMAKE_BINARY_DIR}/tests/host"
  HEDDLE_SKELETON_FOLDER="${CMAKE_SOURCE_DIR}/codegen/Skeletons")
heddle_link_layers(heddle_pattern_test_support PUBLIC heddle_cpu heddle_emit ${CMAKE_DL_LIBS})
heddle_link_mlir(heddle_pattern_test_support MLIRParser)
heddle_use_pch(heddle_pattern_test_support mlir)

heddle_add_unit_test(emit heddle_pattern_test_support)
heddle_add_unit_test(emitted_text heddle_pattern_test_support)
heddle_add_unit_test(cpu_jit heddle_pattern_test_support)
heddle_add_unit_test(cpu_math heddle_cpu)
heddle_add_unit_test(cpu_attention heddle_pattern_test_support)
heddle_add_unit_test(cpu_golden heddle_pattern_test_support)
foreach(topic emitted_text cpu_attention)
  heddle_use_pch(${topic}_test mlir)
endforeach()
foreach(topic emit cpu_jit cpu_golden)
  heddle_use_pch(${topic}_test pattern_test)
endforeach()
if(TARGET heddle_compiler AND TARGET heddle_oracle)
  heddle_add_unit_test(pattern_functions heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(pattern_functions_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomLattices.cpp
                 ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  heddle_add_unit_test(jit_compositions heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(jit_compositions_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomLattices.cpp
                 ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  heddle_use_pch(jit_compositions_test pattern_test)
  heddle_add_unit_test(directions heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_compile_definitions(directions_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
  heddle_use_pch(directions_test pattern_test)
  heddle_add_unit_test(kept_columns heddle_pattern_test_support heddle_compiler)
  target_sources(kept_columns_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  foreach(topic pattern_functions kept_columns)
    target_compile_definitions(${topic}_test PRIVATE HEDDLE_PATTERN_FOLDER="${CMAKE_SOURCE_DIR}/patterns")
  endforeach()
  heddle_use_pch(pattern_functions_test pattern_test)
  heddle_use_pch(kept_columns_test mlir)
  heddle_add_unit_test(extreme_sizes heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(extreme_sizes_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  heddle_use_pch(extreme_sizes_test pattern_test)
  heddle_add_unit_test(chain_passes heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(chain_passes_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  target_compile_definitions(chain_passes_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
  heddle_use_pch(chain_passes_test pattern_test)
  heddle_add_unit_test(random_cells heddle_oracle)
  heddle_add_unit_test(backward heddle_pattern_test_support heddle_cpu_session heddle_oracle)
  target_compile_definitions(backward_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
  heddle_use_pch(backward_test pattern_test)
  if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize") # which follow no change of stacks
    heddle_add_unit_test(host_kernels heddle_pattern_test_support heddle_cpu_session heddle_oracle)
    target_sources(host_kernels_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/HostLaunch.cpp)
    target_compile_definitions(host_kernels_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns"
      HEDDLE_HOST_GPU="${CMAKE_SOURCE_DIR}/tests/unit/host_gpu")
    heddle_use_pch(host_kernels_test pattern_test)
    set_tests_properties(unit.host_kernels PROPERTIES TIMEOUT 3600 COST 300) # it begins first: it takes longest
  endif()
  heddle_add_unit_test(scores heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(scores_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/ServedShapes.cpp)
  heddle_use_pch(scores_test pattern_test)
  heddle_add_unit_test(operands heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_pch(operands_test pattern_test)
  heddle_add_unit_test(documents heddle_pattern_test_support heddle_cpu_session heddle_oracle)
  heddle_use_pch(documents_test pattern_test)
  heddle_add_unit_test(tree heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_pch(tree_test pattern_test)
  heddle_add_unit_test(csr heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_pch(csr_test pattern_test)
endif()
