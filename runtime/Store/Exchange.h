// Owns the value types of merging, exporting and comparing stores (Store.h): which rows are
// meant, what a merge does to each, and how two files differ.
#pragma once

#include "runtime/Core/KernelRecord.h"

#include <optional>
#include <vector>

namespace heddle {

struct StoreCounts {
  int64_t kernels = 0, winners = 0, trials = 0, devices = 0, links = 0, names = 0;
  int64_t total() const { return kernels + winners + trials + devices + links + names; }
};

// Which rows an export takes. A list that is empty accepts everything; conditions combine with "and". Kernels
// go with the winners that name them, names with their patterns, devices with the winners and trials of theirs, links
// with their devices.
struct RowFilter {
  std::vector<std::string> patterns; // digests
  std::vector<std::string> kinds, archs, deviceNames, generators;
  std::vector<DType> dtypes;
  std::vector<int64_t> headDims;
  bool onlyTuned = false; // no untuned winners
  bool hasTrials = true;

  bool accepts(const WinnerKey &key) const;
};

// A winner that a merge adds (no `ours`) or puts in place of another.
struct WinnerChange {
  Winner theirs;
  std::optional<Winner> ours;
};
struct NameChange {
  NameRecord theirs;
  std::optional<NameRecord> ours;
};

// What a merge did, or would do.
struct MergeReport {
  StoreCounts added, replaced;
  std::vector<WinnerChange> winners; // in the order of Store::winners
  std::vector<NameChange> names;

  bool isEmpty() const { return added.total() + replaced.total() == 0; }
};

// A key that both stores have a winner for, with different kernels, times or states.
struct WinnerDifference {
  Winner a, b;
  std::string configA, configB;
  bool isSameKernel() const { return a.contentKey == b.contentKey; }
  // Time of b over that of a; 0 unless both were measured.
  double ratio() const { return a.medianUs > 0 && b.medianUs > 0 ? b.medianUs / a.medianUs : 0; }
};

struct NameDifference {
  NameRecord a, b;
};

// Trials and kernels are counted: a key of only one side, and trials of both whose outcome or time differs.
struct StoreDiff {
  std::vector<Winner> winnersOnlyA, winnersOnlyB;
  std::vector<WinnerDifference> winnersDiffer;
  std::vector<NameRecord> namesOnlyA, namesOnlyB;
  std::vector<NameDifference> namesDiffer;
  int64_t winnersEqual = 0;
  int64_t kernelsOnlyA = 0, kernelsOnlyB = 0;
  int64_t trialsOnlyA = 0, trialsOnlyB = 0, trialsDiffer = 0;

  bool isEqual() const;
};

} // namespace heddle
