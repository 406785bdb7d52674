# Unit tests of compiler/Stream.
if(TARGET heddle_stream)
  heddle_add_unit_test(stream heddle_stream)
  target_include_directories(stream_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit ${CMAKE_SOURCE_DIR}/runtime/Include)
  heddle_use_pch(stream_test pattern_test)
  heddle_add_unit_test(host_staging heddle_staging heddle_fake_cuda)
endif()
