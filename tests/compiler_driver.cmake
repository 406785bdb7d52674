# Unit tests of compiler/Driver.
if(TARGET heddle_compiler)
  heddle_add_unit_test(pattern_file heddle_compiler)
  heddle_add_unit_test(compile_session heddle_compiler)
  target_compile_definitions(compile_session_test PRIVATE HEDDLE_TEST_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
  heddle_add_unit_test(assemble_patterns heddle_compiler)
  target_compile_definitions(assemble_patterns_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
endif()
