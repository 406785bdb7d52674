# NVRTC that compiles nothing twice, for tests alone: unit/kept_nvrtc. Where $HEDDLE_NVRTC_CACHE names a folder, as ./dev test
# does, every test of this build uses it.
if(TARGET heddle_nvrtc)
  set(HEDDLE_KEPT_NVRTC_FOLDER ${CMAKE_CURRENT_SOURCE_DIR}/unit/kept_nvrtc)
  add_library(heddle_kept_nvrtc SHARED ${HEDDLE_KEPT_NVRTC_FOLDER}/KeptNvrtc.cpp ${HEDDLE_KEPT_NVRTC_FOLDER}/KeptResults.cpp
    ${HEDDLE_KEPT_NVRTC_FOLDER}/RealNvrtc.cpp)
  target_link_libraries(heddle_kept_nvrtc PRIVATE heddle_nvrtc heddle_core ${CMAKE_DL_LIBS})
  # A process that loads it has layers of its own.
  target_link_options(heddle_kept_nvrtc PRIVATE -Wl,--version-script=${HEDDLE_KEPT_NVRTC_FOLDER}/exports.map -Wl,-Bsymbolic)
  set(HEDDLE_KEPT_NVRTC ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libheddle_kept_nvrtc.so)
  configure_file(${HEDDLE_KEPT_NVRTC_FOLDER}/ctest.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/kept_nvrtc.cmake @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/kept_nvrtc.cmake)

  if(TARGET heddle_counting_nvrtc)
    heddle_add_unit_test(kept_nvrtc heddle_nvrtc heddle_counting_nvrtc)
    add_dependencies(kept_nvrtc_test heddle_kept_nvrtc)
    heddle_use_pch(kept_nvrtc_test plain_test)
  endif()
  # What is said of NVRTC itself is asked of NVRTC itself.
  set_property(TEST unit.nvrtc APPEND PROPERTY ENVIRONMENT_MODIFICATION HEDDLE_NVRTC_CACHE=unset:)
endif()
