//===- Fuzz.h - what fuzz targets share ---------------------------*- C++ -*-===//
// A target is one function over bytes. With the preset `fuzz` libFuzzer calls it; in other builds replay_main.cpp calls
// it with every file of the corpus, so that what was found once stays mended.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_FUZZ_FUZZ_H
#define HEDDLE_TESTS_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// Ends the process, which is how a target says that it found something.
#define FUZZ_REQUIRE(condition, message)                                                                               \
  do                                                                                                                   \
    if (!(condition)) {                                                                                                \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, std::string(message).c_str());                           \
      std::abort();                                                                                                    \
    }                                                                                                                  \
  while (false)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
