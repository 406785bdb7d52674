# Tests of `heddle report`: its data, what the configuration says without the chart library, and, among the long ones, the
# page in a real browser without a network.
if(NOT TARGET heddle_report)
  return()
endif()
function(heddle_use_recorded_database target)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/RecordedWorkloads.cpp
    ${CMAKE_SOURCE_DIR}/tests/unit/support/RecordedDatabase.cpp ${HEDDLE_RECORDED})
  heddle_use_pch(${target} pattern_test)
endfunction()

heddle_add_unit_test(report heddle_report)
heddle_use_recorded_database(report_test)

add_executable(report-database ${CMAKE_CURRENT_SOURCE_DIR}/report/make_database.cpp)
heddle_link_layers(report-database PRIVATE heddle_session heddle_test_places doctest::doctest)
heddle_use_recorded_database(report-database)
add_test(NAME report.browser
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/report/browser.sh $<TARGET_FILE:heddle> $<TARGET_FILE:report-database> ${CMAKE_BINARY_DIR}/tests/report)
set_tests_properties(report.browser PROPERTIES LABELS long TIMEOUT ${HEDDLE_HANG_SECONDS} SKIP_REGULAR_EXPRESSION "^skipped:")

add_test(NAME report.no_chart_js COMMAND ${CMAKE_COMMAND} -DHEDDLE_CHART_JS=/no/such/chart.min.js -P ${CMAKE_CURRENT_SOURCE_DIR}/report/find_chart_js.cmake)
set_tests_properties(report.no_chart_js PROPERTIES PASS_REGULAR_EXPRESSION "install[ \n]+the[ \n]+package[ \n]+libjs-chart.js")
add_test(NAME report.wrong_chart_js COMMAND ${CMAKE_COMMAND} -DHEDDLE_CHART_JS=${CMAKE_SOURCE_DIR}/LICENSE -P ${CMAKE_CURRENT_SOURCE_DIR}/report/find_chart_js.cmake)
set_tests_properties(report.wrong_chart_js PROPERTIES PASS_REGULAR_EXPRESSION "is[ \n]+not[ \n]+Chart.js[ \n]+3")
