# Unit tests of runtime/; none needs LLVM, CUDA or a GPU.
heddle_add_unit_test(status heddle_core)
heddle_add_unit_test(launch_plan heddle_core)
heddle_add_unit_test(kernel_record heddle_core)
