//===- recorded_database.h - the recorded tables as a database -----------------===//
// The six workloads of tests/data/tuner as `heddle tune` would have left them on an H200, and once more for the name of
// a second GPU with times that were made up from them: tests of what compares GPUs need two. Every trial of the tables
// is in it, the fastest is the winner, and the kernels hold no code that runs.
#ifndef HEDDLE_TESTS_UNIT_RECORDED_DATABASE_H
#define HEDDLE_TESTS_UNIT_RECORDED_DATABASE_H

#include "runtime/Core/KernelRecord.h"
#include "tests/unit/recorded_workloads.h"

#include <string>
#include <vector>

namespace heddle::test {

struct RecordedDatabase {
  bool hasSecondGpu = false;
  bool hasNames = true;    ///< of patterns
  bool hasHostile = false; ///< one more workload whose every string is markup
  double slowdown = 1;     ///< of all times of the first workload; 1: as recorded
  size_t workloads = 6;    ///< the first so many
  std::string generator;   ///< empty: this program's
};

inline constexpr const char *kHostile = "</script><img src=x onerror=\"document.title='owned'\">";

/// A new file at `path`; fails the test case if it cannot be made.
void makeRecordedDatabase(const std::string &path, const RecordedDatabase &what);

/// As --problem takes it; "patterns" is the folder of the pattern files.
std::vector<std::string> recordedProblems(const std::string &patterns);

} // namespace heddle::test

#endif
