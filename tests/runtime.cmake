# Unit tests of runtime/; none needs LLVM, CUDA or a GPU.
heddle_add_unit_test(status heddle_core)
heddle_add_unit_test(launch_plan heddle_core)
heddle_add_unit_test(kernel_record heddle_core)
foreach(topic store store_files store_process)
  heddle_add_unit_test(${topic} heddle_runtime ${HEDDLE_SQLITE_LIBRARY})
  target_include_directories(${topic}_test PRIVATE ${HEDDLE_SQLITE_INCLUDE} ${CMAKE_SOURCE_DIR}/tests/unit)
endforeach()
