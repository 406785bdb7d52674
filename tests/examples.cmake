# The server of examples/server, as a client sees it. tests/install builds it against the installed package.
if(HEDDLE_PYTEST_PYTHON AND TARGET heddle-byte-server)
  add_test(NAME examples.byte_server COMMAND ${HEDDLE_PYTEST_PYTHON} -m pytest -q -rs -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/server)
  set_tests_properties(examples.byte_server PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=1;HEDDLE_BYTE_SERVER=$<TARGET_FILE:heddle-byte-server>;HEDDLE=$<TARGET_FILE:heddle>;HEDDLE_FAKE_CUDA=$<TARGET_FILE:heddle_fake_cuda>")
else()
  add_test(NAME examples.byte_server COMMAND ${CMAKE_COMMAND} -E echo "skipped: no libcpp-httplib-dev, or no python3 with pytest and numpy, at configure time")
  set_tests_properties(examples.byte_server PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:")
endif()
