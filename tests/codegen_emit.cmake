# Unit tests of codegen/Emit and codegen/Cpu. heddle_pattern_test_support is for every layer that
# wants to run emitted text on the host or to compare ranges and outputs with a plain rule.
add_library(heddle_pattern_test_support STATIC
  ${CMAKE_SOURCE_DIR}/tests/unit/support/AttentionCase.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/HandPatterns.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/HostPattern.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/support/ModuleLoader.cpp)
target_include_directories(heddle_pattern_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests/unit)
target_compile_definitions(heddle_pattern_test_support PRIVATE HEDDLE_HOST_CXX="${CMAKE_CXX_COMPILER}"
  HEDDLE_SKELETON_FOLDER="${CMAKE_SOURCE_DIR}/codegen/Skeletons")
target_link_libraries(heddle_pattern_test_support PUBLIC heddle_cpu heddle_emit ${CMAKE_DL_LIBS})
heddle_link_mlir(heddle_pattern_test_support MLIRParser)

heddle_add_unit_test(emit heddle_pattern_test_support)
heddle_add_unit_test(emitted_text heddle_pattern_test_support)
heddle_add_unit_test(cpu_jit heddle_pattern_test_support)
heddle_add_unit_test(cpu_math heddle_cpu)
heddle_add_unit_test(cpu_attention heddle_pattern_test_support)
heddle_add_unit_test(cpu_golden heddle_pattern_test_support)
if(TARGET heddle_compiler AND TARGET heddle_oracle)
  heddle_add_unit_test(pattern_functions heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_add_unit_test(kept_columns heddle_pattern_test_support heddle_compiler)
  target_sources(kept_columns_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RandomPattern.cpp)
  foreach(topic pattern_functions kept_columns)
    target_compile_definitions(${topic}_test PRIVATE HEDDLE_PATTERN_FOLDER="${CMAKE_SOURCE_DIR}/patterns")
  endforeach()
  heddle_add_unit_test(random_cells heddle_oracle)
  heddle_add_unit_test(scores heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(scores_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/ServedShapes.cpp)
  heddle_use_mlir_pch(scores_test)
  heddle_add_unit_test(operands heddle_pattern_test_support heddle_compiler heddle_oracle)
  target_sources(operands_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/ServedShapes.cpp)
  heddle_use_mlir_pch(operands_test)
  heddle_add_unit_test(documents heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_mlir_pch(documents_test)
  heddle_add_unit_test(tree heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_mlir_pch(tree_test)
  heddle_add_unit_test(csr heddle_pattern_test_support heddle_compiler heddle_oracle)
  heddle_use_mlir_pch(csr_test)
endif()
