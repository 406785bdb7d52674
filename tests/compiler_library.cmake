# Unit tests of compiler/Library, most through the C interface of the shared library alone.
if(TARGET heddle_shared)
  heddle_add_unit_test(library_pattern heddle_shared)
  add_library(heddle_counting_nvrtc SHARED ${CMAKE_SOURCE_DIR}/tests/unit/counting_nvrtc.c)
  target_link_libraries(heddle_counting_nvrtc PRIVATE ${CMAKE_DL_LIBS})
  foreach(topic library_compiler library_invariant)
    heddle_add_unit_test(${topic} heddle_shared heddle_fake_cuda heddle_counting_nvrtc heddle_nvrtc)
  endforeach()
  set_target_properties(library_compiler_test PROPERTIES ENABLE_EXPORTS ON)
  heddle_add_unit_test(compiled_pattern heddle_calls)
  heddle_add_unit_test(library_rows heddle_shared heddle_runtime heddle_fake_cuda heddle_counting_nvrtc heddle_nvrtc)
  heddle_add_unit_test(library_memory heddle_shared heddle_runtime heddle_fake_cuda)
  target_sources(library_memory_test PRIVATE ${CMAKE_SOURCE_DIR}/compiler/Library/MadeKernels.cpp)
  heddle_add_unit_test(library_backward heddle_shared heddle_fake_cuda)
  heddle_add_unit_test(library_quantize heddle_shared heddle_fake_cuda)
  heddle_add_unit_test(library_arguments heddle_shared heddle_fake_cuda)
  foreach(topic group_call group_detached group_faults group_guests group_teams group_tensors)
    heddle_add_unit_test(${topic} heddle_shared)
  endforeach()
  target_compile_definitions(group_call_test PRIVATE HEDDLE_GROUP_PLANS="${CMAKE_SOURCE_DIR}/tests/data/group_plans")
  foreach(topic group_call group_detached group_faults group_guests group_teams group_tensors library_pattern library_arguments library_compiler library_rows library_invariant library_memory library_backward library_quantize)
    heddle_use_pch(${topic}_test plain_test)
  endforeach()
  add_test(NAME library.header_is_c
    COMMAND ${CMAKE_C_COMPILER} -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c -I${CMAKE_SOURCE_DIR}/runtime/Include
      ${CMAKE_SOURCE_DIR}/compiler/Library/heddle_compiler.h)
  add_test(NAME library.exports
    COMMAND sh -c "nm -D --defined-only $<TARGET_FILE:heddle_shared> | grep -q ' T heddle_compiler_kernel' && nm -D --defined-only $<TARGET_FILE:heddle_shared> | grep -q ' T heddle_kernel_launch' && ! nm -D --defined-only $<TARGET_FILE:heddle_shared> | grep -v ' heddle_'")
  if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize") # as runtime.install
    add_test(NAME library.install COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/compiler.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}
      $<TARGET_FILE:heddle_fake_cuda> ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
    set_tests_properties(library.install PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}")
  endif()

  # Groups of processes over the stand-ins of the driver and of NCCL (tests/ranks): the device test, as far as it goes without a
  # GPU, and more failures.
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tests/group)
  function(heddle_test_ranks name)
    add_test(NAME ranks.${name} COMMAND heddle-ranks ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(ranks.${name} PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
      "HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>;HEDDLE_NCCL_LIBRARY=$<TARGET_FILE:heddle_fake_nccl>")
  endfunction()
  if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize") # it has the clock and the library's version in its own hands
    add_test(NAME device.group COMMAND ${CMAKE_SOURCE_DIR}/tests/device/group.sh WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(device.group PROPERTIES FAIL_REGULAR_EXPRESSION "FAIL|skip" TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
      "HEDDLE=/bin/true;HEDDLE_SCRATCH=${CMAKE_BINARY_DIR}/tests/group;HEDDLE_PROGRAMS=${CMAKE_BINARY_DIR}/bin;HEDDLE_RANKS=3;HEDDLE_RANK_KILLS=2;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>;HEDDLE_NCCL_LIBRARY=$<TARGET_FILE:heddle_fake_nccl>")
    heddle_test_ranks(results results --ranks=4)
    heddle_test_ranks(kills kills --count=200)
    heddle_test_ranks(threads threads --count=200)
    heddle_test_ranks(more_kills kills --count=1000 --seed=2)
    heddle_test_ranks(more_threads threads --count=2000 --seed=2)
    set_tests_properties(ranks.more_kills ranks.more_threads PROPERTIES LABELS long TIMEOUT 3600)
  endif()
endif()
