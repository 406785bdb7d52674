# The Python package against the libraries of this build. Needs python3 with pytest and numpy (python3-pytest,
# python3-numpy); what needs PyTorch is skipped by the tests themselves where it is missing.

# heddle_add_python_test(<name> <library>): all of tests/python with that library.
function(heddle_add_python_test name library)
  if(HEDDLE_PYTEST_PYTHON)
    add_test(NAME ${name} COMMAND ${HEDDLE_PYTEST_PYTHON} -m pytest -q -rs -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/python)
    # ASAN_OPTIONS: python, which is not built with the sanitizers, loads a library that may be.
    set_tests_properties(${name} PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS} ENVIRONMENT
      "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0;PYTHONDONTWRITEBYTECODE=1;HEDDLE_LIBRARY=$<TARGET_FILE:${library}>;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>;HEDDLE_HOST_PACKAGE=${HEDDLE_HOST_PACKAGE}")
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: no python3 with pytest and numpy (python3-pytest, python3-numpy) at configure time")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:")
  endif()
endfunction()

heddle_add_python_test(python.runtime heddle_runtime_shared)
if(TARGET heddle_shared)
  heddle_add_python_test(python.compiler heddle_shared)
endif()

if(HEDDLE_PYTEST_PYTHON AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
  add_test(NAME python.package COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/package.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${HEDDLE_PYTEST_PYTHON})
  set_tests_properties(python.package PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
  add_test(NAME python.wheel COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/wheel.sh ${CMAKE_SOURCE_DIR} ${HEDDLE_HOST_PACKAGE}
    $<TARGET_FILE:heddle_fake_cuda> ${HEDDLE_PYTEST_PYTHON})
  set_tests_properties(python.wheel PROPERTIES LABELS long TIMEOUT ${HEDDLE_HANG_SECONDS} SKIP_REGULAR_EXPRESSION "skipped:")
  if(TARGET heddle_shared)
    add_test(NAME python.torch COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install/torch.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}
      $<TARGET_FILE:heddle_runtime_shared> $<TARGET_FILE:heddle_shared>)
    set_tests_properties(python.torch PROPERTIES LABELS long TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "(^|\n)skipped: " ENVIRONMENT
      "PYTHONDONTWRITEBYTECODE=1;HEDDLE_CUDA_DRIVER_LIBRARY=$<TARGET_FILE:heddle_fake_cuda>;HEDDLE_HOST_PACKAGE=${HEDDLE_HOST_PACKAGE}")
  endif()
endif()
