# Unit tests of runtime/; none needs LLVM, CUDA or a GPU.
heddle_add_unit_test(status heddle_core)
heddle_add_unit_test(count_text heddle_core)
heddle_add_unit_test(counters heddle_core)
heddle_add_unit_test(drift heddle_core)
target_compile_definitions(drift_test PRIVATE HEDDLE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
heddle_add_unit_test(parse_count heddle_core)
heddle_add_unit_test(parallel_for heddle_core)
heddle_add_unit_test(safe_text heddle_core)
heddle_add_unit_test(launch_plan heddle_core)
heddle_add_unit_test(kinds heddle_runtime)
heddle_add_unit_test(call_forms heddle_runtime)
heddle_add_unit_test(sequence_checks heddle_runtime)
heddle_add_unit_test(strided_bytes heddle_core)
heddle_add_unit_test(kernel_images heddle_core)
heddle_add_unit_test(kernel_record heddle_core)
heddle_add_unit_test(part_folder heddle_core)
foreach(topic store store_crowd store_damage store_export store_files store_full_disk store_kill store_merge store_names store_power store_process
    store_recovery store_stack store_strangers store_wait)
  heddle_add_unit_test(${topic} heddle_runtime ${HEDDLE_SQLITE_LIBRARY})
  target_include_directories(${topic}_test PRIVATE ${HEDDLE_SQLITE_INCLUDE})
endforeach()

heddle_replace_calls(store_kill_test CountedCalls)
heddle_replace_calls(store_process_test CountedCalls)
heddle_replace_calls(store_wait_test StandingClock)
set_target_properties(store_strangers_test PROPERTIES ENABLE_EXPORTS ON)

# The recording stand-in for the CUDA driver; programs take it through HEDDLE_CUDA_DRIVER_LIBRARY.
add_library(heddle_fake_cuda SHARED
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/FakeDevice.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/FakeGraph.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/FakeKernel.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/FakePool.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/FakeState.cpp
  ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/HostKernel.cpp)
target_link_libraries(heddle_fake_cuda PRIVATE ${CMAKE_DL_LIBS})
if("${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=thread") # FakeState.h, SpinLock, says why
  target_compile_options(heddle_fake_cuda PRIVATE -fno-sanitize=thread)
endif()

# A packed file whose kernels that driver runs on this machine's processors.
add_library(heddle_host_attention MODULE ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/host_attention.c)
set_target_properties(heddle_host_attention PROPERTIES C_STANDARD 99)
target_compile_options(heddle_host_attention PRIVATE -O3 -funsafe-math-optimizations) # infinities are needed
target_link_libraries(heddle_host_attention PRIVATE m)
add_executable(heddle-host-package ${CMAKE_SOURCE_DIR}/tests/unit/fake_cuda/host_package.cpp)
target_link_libraries(heddle-host-package PRIVATE heddle_runtime)
add_custom_command(OUTPUT ${HEDDLE_HOST_PACKAGE}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${HEDDLE_HOST_PACKAGE}
  COMMAND heddle-host-package ${HEDDLE_HOST_PACKAGE} $<TARGET_FILE:heddle_host_attention>
  DEPENDS heddle-host-package heddle_host_attention VERBATIM)
add_custom_target(heddle_host_package ALL DEPENDS ${HEDDLE_HOST_PACKAGE})
foreach(topic device device_launch device_graph device_tensor_map device_arguments kernel_finder)
  heddle_add_unit_test(${topic} heddle_runtime heddle_fake_cuda)
endforeach()
heddle_replace_calls(kernel_finder_test StandingClock)

# The stand-in for NCCL beside it, and an older one by the name that the loader knows.
find_package(Threads REQUIRED)
function(heddle_add_fake_nccl target)
  add_library(${target} SHARED ${CMAKE_SOURCE_DIR}/tests/unit/fake_nccl/FakeCalls.cpp ${CMAKE_SOURCE_DIR}/tests/unit/fake_nccl/FakeState.cpp
    ${CMAKE_SOURCE_DIR}/tests/unit/fake_nccl/SharedRanks.cpp)
  target_link_libraries(${target} PRIVATE heddle_fake_cuda Threads::Threads)
  if("${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=thread") # as of the driver's
    target_compile_options(${target} PRIVATE -fno-sanitize=thread)
  endif()
endfunction()
heddle_add_fake_nccl(heddle_fake_nccl)
heddle_add_fake_nccl(heddle_fake_old_nccl)
target_compile_definitions(heddle_fake_old_nccl PRIVATE HEDDLE_FAKE_OLD_NCCL)
set_target_properties(heddle_fake_old_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/old_nccl)
foreach(topic nccl_library nccl_transport nccl_lost)
  heddle_add_unit_test(${topic} heddle_runtime heddle_fake_cuda heddle_fake_nccl)
  add_dependencies(${topic}_test heddle_fake_old_nccl)
endforeach()
heddle_replace_calls(nccl_lost_test StandingClock)
heddle_add_unit_test(group_order heddle_runtime)
heddle_add_unit_test(group_graph heddle_runtime heddle_fake_cuda heddle_fake_nccl)
heddle_add_unit_test(cuda_shard heddle_runtime heddle_fake_cuda)
foreach(topic group_order group_graph)
  target_include_directories(${topic}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit)
  target_compile_definitions(${topic}_test PRIVATE HEDDLE_GROUP_PLANS="${CMAKE_SOURCE_DIR}/tests/data/group_plans")
endforeach()

# The program that says what the host pays for launches, and what must hold beside it; its times are no part of the test.
set(HEDDLE_HOST_COST_OPTIONS --sizes=20 --heads=2 --launches=20 --rounds=5 --lengths=200 --threads=16 --launches-of-each=60 --graph=20
  --memory-tokens=1000)
set(HEDDLE_HOST_COST heddle-host-cost --db=${HEDDLE_HOST_PACKAGE} ${HEDDLE_HOST_COST_OPTIONS})
add_test(NAME bench.host_cost COMMAND ${HEDDLE_HOST_COST})
add_test(NAME bench.host_cost_limit COMMAND ${HEDDLE_HOST_COST} --prepared-limit-us=0.001)
add_test(NAME bench.host_cost_wrong COMMAND ${HEDDLE_HOST_COST})
set_tests_properties(bench.host_cost bench.host_cost_limit PROPERTIES ENVIRONMENT "HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>")
set_tests_properties(bench.host_cost_wrong PROPERTIES ENVIRONMENT
  "HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>;HEDDLE_FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2=scribble")
set_tests_properties(bench.host_cost PROPERTIES PASS_REGULAR_EXPRESSION "\"differing\": 0.*\"beyond_bytes\": 0.*\"stream_of_gpu_1\": \"invalidArgument\".*\"within_limits\": true")
set_tests_properties(bench.host_cost_limit PROPERTIES PASS_REGULAR_EXPRESSION "\"within_limits\": false")
set_tests_properties(bench.host_cost_wrong PROPERTIES PASS_REGULAR_EXPRESSION "error: first call: out is not 1 where v is")

# The device test of the C interface, as far as it goes without a GPU.
list(JOIN HEDDLE_HOST_COST_OPTIONS " " HEDDLE_HOST_COST_WORDS)
add_test(NAME device.embedding COMMAND ${CMAKE_SOURCE_DIR}/tests/device/embedding.sh WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(device.embedding PROPERTIES FAIL_REGULAR_EXPRESSION "FAIL|skip" TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
  "HEDDLE=/bin/true;HEDDLE_SCRATCH=${CMAKE_BINARY_DIR}/tests;HEDDLE_PROGRAMS=${CMAKE_BINARY_DIR}/bin;HEDDLE_PACKAGE=${HEDDLE_HOST_PACKAGE};HEDDLE_ROWS=200;HEDDLE_REQUESTS=50;HEDDLE_HOST_COST_OPTIONS=${HEDDLE_HOST_COST_WORDS} --prepared-limit-us=1e9 --first-limit-ms=1e9;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>")

# And that of arenas.
add_test(NAME device.arena COMMAND ${CMAKE_SOURCE_DIR}/tests/device/arena.sh WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(device.arena PROPERTIES FAIL_REGULAR_EXPRESSION "FAIL|skip" TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
  "HEDDLE=/bin/true;HEDDLE_PROGRAMS=${CMAKE_BINARY_DIR}/bin;HEDDLE_ARENA_DRY=1;HEDDLE_ARENA_CALLS=20000;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>")

# And what counters take, without its times.
add_test(NAME device.counters COMMAND ${CMAKE_SOURCE_DIR}/tests/device/counters.sh WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(device.counters PROPERTIES FAIL_REGULAR_EXPRESSION "FAIL|skip" TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
  "HEDDLE=/bin/true;HEDDLE_SCRATCH=${CMAKE_BINARY_DIR}/tests;HEDDLE_PROGRAMS=${CMAKE_BINARY_DIR}/bin;HEDDLE_PACKAGE=${HEDDLE_HOST_PACKAGE};HEDDLE_WINDOW=20;HEDDLE_COUNTERS_DRY=1;HEDDLE_COUNTERS_OPTIONS=--heads=2 --rows=16,100 --rounds=2 --us=100;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>")

# The C interface as an application links it; the store is made through the C++ layer.
set(HEDDLE_RUNTIME_TESTS runtime_api runtime_arena runtime_bad_input runtime_hpp runtime_stats runtime_threads)
if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize") # it stands where sanitizers stand
  list(APPEND HEDDLE_RUNTIME_TESTS runtime_steady_state)
endif()
foreach(topic IN LISTS HEDDLE_RUNTIME_TESTS)
  heddle_add_unit_test(${topic} heddle_runtime_shared heddle_runtime heddle_fake_cuda)
endforeach()
add_dependencies(runtime_threads_test heddle_host_package)
add_test(NAME runtime.exports
  COMMAND sh -c "nm -D --defined-only $<TARGET_FILE:heddle_runtime_shared> | grep -q ' T heddle_kernel_launch' && ! nm -D --defined-only $<TARGET_FILE:heddle_runtime_shared> | grep -v ' heddle_'")
# Promise 1: what it needs of others holds nothing that ends a process or writes to its streams, and one way to the environment.
add_test(NAME runtime.silent
  COMMAND sh -c "! nm -D --undefined-only $<TARGET_FILE:heddle_runtime_shared> | grep -E ' (_?exit|_Exit|quick_exit|abort|v?d?f?printf|puts|fputs|fputc|putchar|fwrite|perror|psignal|v?syslog|write|writev|std(out|err)|secure_getenv|environ|_ZSt4c(out|err|log))(@|$)' && test $(nm -D --undefined-only $<TARGET_FILE:heddle_runtime_shared> | grep -c ' getenv') = 1")
add_test(NAME runtime.header_is_c
  COMMAND ${CMAKE_C_COMPILER} -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c ${CMAKE_SOURCE_DIR}/runtime/Include/heddle.h ${CMAKE_SOURCE_DIR}/runtime/Include/heddle_arena.h ${CMAKE_SOURCE_DIR}/runtime/Include/heddle_stats.h)

# Promise 14: the same launches with and without counters.
if("${CMAKE_BUILD_TYPE}" STREQUAL Release)
  foreach(program prepared_cost_test prepared_cost_uncounted)
    add_executable(${program} ${CMAKE_SOURCE_DIR}/tests/unit/prepared_cost_test.cpp)
    target_link_libraries(${program} PRIVATE heddle_runtime heddle_fake_cuda heddle_test_main)
  endforeach()
  target_sources(prepared_cost_uncounted PRIVATE ${CMAKE_SOURCE_DIR}/runtime/Device/Launch.cpp)
  target_compile_definitions(prepared_cost_uncounted PRIVATE HEDDLE_UNCOUNTED)
  add_test(NAME runtime.prepared_cost
    COMMAND ${CMAKE_SOURCE_DIR}/tests/unit/prepared_cost.sh $<TARGET_FILE:prepared_cost_test> $<TARGET_FILE:prepared_cost_uncounted>)
  set_tests_properties(runtime.prepared_cost PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:" TIMEOUT ${HEDDLE_HANG_SECONDS})
endif()

if(TARGET runtime_steady_state_test)
  heddle_replace_calls(runtime_steady_state_test StandingClock)
endif()

# The comparisons with cuda.h and nccl.h happen in the compiler, where these are there.
heddle_add_unit_test(device_cuda_h heddle_core)
find_path(HEDDLE_CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
mark_as_advanced(HEDDLE_CUDA_INCLUDE)
if(HEDDLE_CUDA_INCLUDE)
  target_include_directories(device_cuda_h_test SYSTEM PRIVATE ${HEDDLE_CUDA_INCLUDE})
endif()

heddle_add_unit_test(nccl_h heddle_core)
find_path(HEDDLE_NCCL_INCLUDE nccl.h)
mark_as_advanced(HEDDLE_NCCL_INCLUDE)
if(HEDDLE_NCCL_INCLUDE AND HEDDLE_CUDA_INCLUDE)
  target_include_directories(nccl_h_test SYSTEM PRIVATE ${HEDDLE_NCCL_INCLUDE} ${HEDDLE_CUDA_INCLUDE})
endif()

# The installed tree alone, from another folder than it was installed to. Sanitizers have libraries of their own that a
# program must load first, so the examples are not built against them.
if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
  add_test(NAME runtime.install COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/run.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}
    ${HEDDLE_HOST_PACKAGE} $<TARGET_FILE:heddle_fake_cuda> ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER} "${CMAKE_BUILD_TYPE}")
  # The generator of this build: another one's program may be missing.
  set_tests_properties(runtime.install PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}")
endif()
