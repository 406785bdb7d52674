//===- Rank.h - one process of a group -------------------------------------------------===//
// Owns what a rank does when its launcher orders it: it joins, calls, leaves, or dies at a point. An order is a line, and so is
// the answer: a status code, whether what a call only reads is what it was, and words.
#ifndef HEDDLE_TESTS_RANKS_RANK_H
#define HEDDLE_TESTS_RANKS_RANK_H

#include "Kernels.h"

#include <functional>

namespace heddle::ranks {

// One rank's part of a call.
struct Request {
  const Scene *scene = nullptr;
  const heddle_group_plan *plan = nullptr;
  bool isForward = true, isBackward = true;
  float scale = 0;
  bool hasDLse = true;
  std::vector<heddle_operand> operands = {};
  const char *version = nullptr;    // of the library, where it is to be another one
  const Scene *kernelsOf = nullptr; // null: of its own scene
};

// Known to all ranks before they are started. `change`: makes one of the ranks another one.
struct Attempt {
  Scene *scene = nullptr;
  const heddle_group_plan *plan = nullptr;
  bool isBackward = true;
  std::function<void(Request &request, int rank)> change = {};
};

struct RankOptions {
  int number = 0; // of the process
  int channel = -1;
  bool standsStill = false; // its clock, but for what the launcher moves
};

// Serves orders until there are none.
[[noreturn]] void liveAsRank(const RankOptions &options, const std::vector<Attempt> &attempts, Kernels &kernels);

} // namespace heddle::ranks

#endif
