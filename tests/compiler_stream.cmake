# Unit tests of compiler/Stream.
if(TARGET heddle_stream)
  heddle_add_unit_test(stream heddle_stream)
  target_compile_definitions(stream_test PRIVATE HEDDLE_PATTERNS="${CMAKE_SOURCE_DIR}/patterns")
  target_include_directories(stream_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit ${CMAKE_SOURCE_DIR}/runtime/Include)
  heddle_use_pch(stream_test pattern_test)
endif()
