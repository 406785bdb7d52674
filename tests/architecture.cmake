# The tree against its own rules, and the proof that each rule bites. The README's example is run
# as it stands, when the program it names is part of this build.
foreach(check includes registries estimates architectures op_names sizes leftovers links documented house python_circles)
  add_test(NAME architecture.${check}
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/architecture/check.sh ${CMAKE_SOURCE_DIR} ${check})
  set_tests_properties(architecture.${check} PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
endforeach()
add_test(NAME architecture.selftest COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/architecture/selftest.sh)
set_tests_properties(architecture.selftest PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})

if(TARGET heddle)
  add_test(NAME architecture.readme_example
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/architecture/readme_example.sh ${CMAKE_SOURCE_DIR} $<TARGET_FILE:heddle>)
  set_tests_properties(architecture.readme_example PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
endif()
add_test(NAME architecture.device_runner COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/architecture/device_runner.sh)
set_tests_properties(architecture.device_runner PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})

find_program(HEDDLE_CLANG_FORMAT clang-format-22)
if(HEDDLE_CLANG_FORMAT)
  add_test(NAME architecture.format COMMAND ${CMAKE_SOURCE_DIR}/dev format --check)
  set_tests_properties(architecture.format PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
else()
  add_test(NAME architecture.format COMMAND ${CMAKE_COMMAND} -E echo "skipped: no clang-format-22 at configure time")
  set_tests_properties(architecture.format PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:")
endif()
