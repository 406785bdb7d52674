# The half of bench/peers that needs neither a GPU nor torch.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND TARGET heddle)
  add_test(NAME bench.peers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/unit/bench_peers_test.py)
  # ASAN_OPTIONS: python, which is not built with the sanitizers, loads a library that may be.
  set_tests_properties(bench.peers PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0;HEDDLE=$<TARGET_FILE:heddle>;HEDDLE_RUNTIME=$<TARGET_FILE:heddle_runtime_shared>;HEDDLE_FAKE_CUDA_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>")
  add_test(NAME bench.table COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/unit/bench_table_test.py)
  add_test(NAME bench.runs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/unit/bench_runs_test.py)
  set_tests_properties(bench.table bench.runs PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
  add_test(NAME bench.session COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/unit/bench_session_test.py)
  set_tests_properties(bench.session PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} SKIP_REGULAR_EXPRESSION "^skipped:")
else()
  add_test(NAME bench.peers COMMAND ${CMAKE_COMMAND} -E echo "skipped: no python3 at configure time")
  add_test(NAME bench.table COMMAND ${CMAKE_COMMAND} -E echo "skipped: no python3 at configure time")
  add_test(NAME bench.runs COMMAND ${CMAKE_COMMAND} -E echo "skipped: no python3 at configure time")
  set_tests_properties(bench.peers bench.table bench.runs PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:")
endif()
