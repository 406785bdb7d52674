//===- recorded_workloads.h - what was measured on an H200 ---------------------===//
// The tables of tests/data/tuner that are trials of `heddle tune --strategy=random` on an NVIDIA H200, 2026-11-22, as
// files, and the problems that they say they are of.
#ifndef HEDDLE_TESTS_UNIT_RECORDED_WORKLOADS_H
#define HEDDLE_TESTS_UNIT_RECORDED_WORKLOADS_H

#include "compiler/Pattern/ProblemKey.h"
#include "tests/recorded/CostTraining.h"

#include <memory>
#include <string>
#include <vector>

namespace heddle::test {

struct RecordedWorkload {
  const char *table, *pattern;
  std::vector<std::string> sizes;
  int64_t batch, heads, kvHeads, seqlen, headDim;
};

/// Every recorded workload, in the order of the training's tables.
const std::vector<RecordedWorkload> &recordedWorkloads();

struct LoadedWorkload {
  std::unique_ptr<PatternFile> file;
  ProblemShape shape;
  std::shared_ptr<const TuneSpace> space;
};
/// On an architecture with warpgroup products; fails the test case if something is missing.
LoadedWorkload load(const RecordedWorkload &workload, const std::string &skeleton = {});

/// The families of which tables are recorded.
inline const std::string kHopper = "sm90_forward", kPortable = "portable_forward";

/// All workloads, with kernels of one family.
CostTraining loadTraining(const std::string &skeleton = kHopper);
/// That of each family, loaded once.
const std::vector<CostTraining> &trainings();

} // namespace heddle::test

#endif
