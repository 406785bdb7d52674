# heddle_add_unit_test(<topic> <library>...): builds tests/unit/<topic>_test.cpp with doctest and
# registers it with CTest. A test that needs a GPU belongs in tests/device instead.
function(heddle_add_unit_test topic)
  add_executable(${topic}_test ${CMAKE_SOURCE_DIR}/tests/unit/${topic}_test.cpp)
  target_link_libraries(${topic}_test PRIVATE ${ARGN} heddle_test_main)
  add_test(NAME unit.${topic} COMMAND ${topic}_test)
  set_tests_properties(unit.${topic} PROPERTIES TIMEOUT 600)
endfunction()

# heddle_compile_unoptimised(<topic>...): for tests that compute next to nothing themselves. A change of a header that they
# all read is then built in half the time. Not for targets with the shared precompiled header, which is of optimised code.
function(heddle_compile_unoptimised)
  foreach(topic ${ARGN})
    target_compile_options(${topic}_test PRIVATE $<$<CONFIG:Release>:-O0>)
  endforeach()
endfunction()
