# Unit tests of compiler/Io; with HEDDLE_COMPILER=OFF there is nothing to test.
if(TARGET heddle_io)
  heddle_add_unit_test(safetensors heddle_io)
  heddle_add_unit_test(memory heddle_io)
  heddle_add_unit_test(random_tensors heddle_io)
  heddle_add_unit_test(scale_inputs heddle_io)
  heddle_add_unit_test(sequence_inputs heddle_io)
  heddle_add_unit_test(extreme_scores heddle_io)
endif()
