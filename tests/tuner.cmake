# Unit tests of the tuner; none needs a GPU.
if(TARGET heddle_tuner)
  # Tables of what was measured, evaluators that play them back, and fits of the cost model to them.
  add_library(heddle_recorded_tables OBJECT)
  foreach(source Fit RankReport RecordedEvaluator RecordedTable RecordedText)
    target_sources(heddle_recorded_tables PRIVATE ${CMAKE_SOURCE_DIR}/tests/recorded/${source}.cpp)
  endforeach()
  target_link_libraries(heddle_recorded_tables PRIVATE heddle_tuner)
  foreach(topic search_space measure cost_model strategies tuning_session tuning_threads tuning_final)
    heddle_add_unit_test(${topic} heddle_tuner)
    target_sources(${topic}_test PRIVATE $<TARGET_OBJECTS:heddle_recorded_tables>)
  endforeach()
endif()
