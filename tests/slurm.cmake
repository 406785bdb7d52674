# A sweep as a job array of a real Slurm, one node killed: with --all, as root, where Slurm is installed.
if(TARGET heddle-recorded)
  add_test(NAME slurm.sweep COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/slurm/sweep.sh $<TARGET_FILE:heddle-recorded> ${CMAKE_SOURCE_DIR})
  set_tests_properties(slurm.sweep PROPERTIES LABELS long TIMEOUT 330 SKIP_REGULAR_EXPRESSION "^skipped:")
endif()
