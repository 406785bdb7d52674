# Unit tests of compiler/Plan.
if(TARGET heddle_plan)
  heddle_add_unit_test(work_plan heddle_plan)
  heddle_use_pch(work_plan_test plain_test)
endif()
if(TARGET heddle_session)
  heddle_add_unit_test(sweep_shard heddle_session)
  heddle_use_pch(sweep_shard_test pattern_test)
endif()
