# Unit tests of the tuner; none needs a GPU.
if(TARGET heddle_tuner)
  foreach(topic search_space)
    heddle_add_unit_test(${topic} heddle_tuner)
  endforeach()
endif()
