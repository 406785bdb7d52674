# heddle_find_chart_js(): sets HEDDLE_CHART_JS to the Chart.js 3 of the distribution, which `heddle report` carries in its
# pages. The package is named where it is missing; nothing is downloaded.
function(heddle_find_chart_js)
  find_file(HEDDLE_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH
    DOC "Chart.js 3 as one file, minified")
  set(help "install the package libjs-chart.js, or give the file with -DHEDDLE_CHART_JS=FILE")
  if(NOT HEDDLE_CHART_JS OR NOT EXISTS "${HEDDLE_CHART_JS}")
    message(FATAL_ERROR "no chart.min.js of Chart.js 3 (${HEDDLE_CHART_JS}): ${help}")
  endif()
  file(READ "${HEDDLE_CHART_JS}" banner LIMIT 200)
  if(NOT banner MATCHES "Chart\\.js v3\\.")
    message(FATAL_ERROR "${HEDDLE_CHART_JS} is not Chart.js 3: ${help}")
  endif()
  get_filename_component(name "${HEDDLE_CHART_JS}" NAME)
  if(NOT name STREQUAL "chart.min.js")
    message(FATAL_ERROR "${HEDDLE_CHART_JS} must be called chart.min.js: ${help}")
  endif()
endfunction()
