//===- Places.h - where tests find files ------------------------------------===//
// Owns the absolute paths that tests need. Places.cpp alone is compiled with them, so a second clone takes every other object
// of the tests out of the compiler's cache.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_PLACES_H
#define HEDDLE_TESTS_UNIT_SUPPORT_PLACES_H

#include <string>

namespace heddle::test {

struct Places {
  std::string source, patterns, data, arguments, skeletons, hostGpu; // folders of the sources
  std::string hostFolder, hostCompile,
      hostLink; // where device code is compiled for this machine, and the beginnings of both commands
  const char *heddle, *hostPackage;
  // Shared libraries that stand in for others; "" where this build has none.
  const char *fakeCuda, *fakeNccl, *fakeOldNccl, *fakeNvml, *keptNvrtc, *countingNvrtc;
};

const Places &places();

} // namespace heddle::test
#endif
