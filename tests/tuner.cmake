# Unit tests of the tuner; none needs a GPU.
if(TARGET heddle_tuner)
  foreach(topic search_space measure cost_model strategies tuning_session tuning_threads tuning_final)
    heddle_add_unit_test(${topic} heddle_tuner)
    target_compile_definitions(${topic}_test PRIVATE HEDDLE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  endforeach()
endif()
