# What configuring says about a chart library: cmake -DHEDDLE_CHART_JS=FILE -P find_chart_js.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/HeddleChartJs.cmake)
heddle_find_chart_js()
