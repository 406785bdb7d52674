# Tests of the planner of training: its arithmetic, and its predictions of published runs.
if(TARGET heddle_cost)
  heddle_add_unit_test(cost heddle_cost)
  heddle_use_pch(cost_test plain_test)
endif()
if(TARGET heddle_views)
  heddle_add_unit_test(cost_published heddle_views)
  heddle_use_pch(cost_published_test mlir)
endif()
