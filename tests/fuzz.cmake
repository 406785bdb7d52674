# Fuzz targets (docs/verification.md). With HEDDLE_FUZZ (preset `fuzz`) they are libFuzzer programs that `./dev fuzz`
# runs; otherwise each is a test that replays its corpus.
option(HEDDLE_FUZZ "link fuzz targets with libFuzzer (clang)" OFF)
if(NOT TARGET heddle_compiler)
  return()
endif()

add_custom_target(heddle_fuzz)
function(heddle_add_fuzz_target name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}_fuzz.cpp)
  heddle_link_layers(fuzz_${name} PRIVATE ${arg_LIBRARIES})
  add_dependencies(heddle_fuzz fuzz_${name})
  if(HEDDLE_FUZZ)
    target_sources(fuzz_${name} PRIVATE ${arg_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(fuzz_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/replay_main.cpp)
  add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 120)
endfunction()

heddle_add_fuzz_target(pattern SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/pattern_mutator.cpp LIBRARIES heddle_compiler)
if(NOT HEDDLE_FUZZ)
  heddle_use_pch(fuzz_pattern pattern)
endif()
target_sources(fuzz_pattern PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/support/ServedShapes.cpp)
target_include_directories(fuzz_pattern PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit)
heddle_add_fuzz_target(safetensors LIBRARIES heddle_io)
heddle_add_fuzz_target(texts LIBRARIES heddle_config heddle_core)
heddle_add_fuzz_target(store LIBRARIES heddle_runtime)

# Patterns that are changed at random, through the program as it is.
if(TARGET heddle AND HEDDLE_PYTEST_PYTHON AND NOT HEDDLE_FUZZ)
  add_test(NAME fuzz.command_line COMMAND ${HEDDLE_PYTEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/mutate_patterns.py
    $<TARGET_FILE:heddle> ${CMAKE_SOURCE_DIR}/patterns --runs 60 --keep ${CMAKE_BINARY_DIR})
  set_tests_properties(fuzz.command_line PROPERTIES TIMEOUT 300)
endif()
