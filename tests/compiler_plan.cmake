# Unit tests of compiler/Plan.
if(TARGET heddle_plan)
  heddle_add_unit_test(work_plan heddle_plan)
  heddle_use_pch(work_plan_test plain_test)
endif()
