# Only a test that hangs takes so long, on a machine that is busy with other work too: at least ten times what any takes alone.
set(HEDDLE_HANG_SECONDS 1800)

# heddle_add_unit_test(<topic> <library>...): builds tests/unit/<topic>_test.cpp with doctest and
# registers it with CTest. A test that needs a GPU belongs in tests/device instead.
function(heddle_add_unit_test topic)
  add_executable(${topic}_test ${CMAKE_SOURCE_DIR}/tests/unit/${topic}_test.cpp)
  heddle_link_layers(${topic}_test PRIVATE ${ARGN} heddle_test_main)
  add_test(NAME unit.${topic} COMMAND ${topic}_test)
  set_tests_properties(unit.${topic} PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
endfunction()

# heddle_replace_calls(<test> <file>): what tests/unit/support/<file>.cpp defines stands for the C library's functions, those that
# shared libraries call too. CountedCalls: tests that kill at a call that changes a file. StandingClock: tests that say what time passes.
function(heddle_replace_calls test file)
  target_sources(${test} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/support/${file}.cpp)
  set_target_properties(${test} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# heddle_add_layers(): for tests, all layers once more as one shared library. What needs MLIR takes a fifth of a second to link,
# and forty tests do; against this library they are linked when they change themselves, not when a layer does.
set(HEDDLE_PLAIN_LAYERS heddle_core heddle_geometry heddle_runtime heddle_config heddle_nvrtc heddle_tuner heddle_io heddle_plan heddle_cost heddle_group heddle_staging)
set(HEDDLE_MLIR_LAYERS heddle_dialect heddle_schedule heddle_emit heddle_cpu heddle_oracle heddle_choose heddle_pattern heddle_measure heddle_compiler heddle_cpu_session
  heddle_session heddle_views heddle_report heddle_calls heddle_stream)
function(heddle_add_layers)
  add_library(heddle_layers SHARED EXCLUDE_FROM_ALL)
  find_package(Threads REQUIRED)
  target_link_libraries(heddle_layers PRIVATE ${HEDDLE_SQLITE_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} m)
  heddle_link_mlir(heddle_layers)
  foreach(layer IN LISTS HEDDLE_PLAIN_LAYERS HEDDLE_MLIR_LAYERS)
    target_sources(heddle_layers PRIVATE $<TARGET_OBJECTS:${layer}>)
    target_include_directories(heddle_layers INTERFACE $<TARGET_PROPERTY:${layer},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
endfunction()

# heddle_link_layers(<target> <scope> <library>...): target_link_libraries, with heddle_layers for the layers if one of them
# needs MLIR. A process must not hold a layer twice.
function(heddle_link_layers target scope)
  set(rest ${ARGN})
  list(REMOVE_ITEM rest ${HEDDLE_MLIR_LAYERS})
  if(TARGET heddle_layers AND (NOT "${rest}" STREQUAL "${ARGN}" OR heddle_pattern_test_support IN_LIST rest))
    list(REMOVE_ITEM rest ${HEDDLE_PLAIN_LAYERS})
    target_link_libraries(${target} ${scope} ${rest} heddle_layers)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS_NO_SHARED ON)
  else()
    target_link_libraries(${target} ${scope} ${ARGN})
  endif()
endfunction()
