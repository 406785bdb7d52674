//===- Standstill.h - when time passes -------------------------------------------------===//
// Owns the time of ranks whose clocks stand. It moves by more than the limit once nobody who is waited for gets on: all of them
// ask again and again for what does not come. So a limit is reached where somebody is missing, and only there, however busy the
// machine is.
#ifndef HEDDLE_TESTS_RANKS_STANDSTILL_H
#define HEDDLE_TESTS_RANKS_STANDSTILL_H

#include "Board.h"

#include <vector>

namespace heddle::ranks {

class Standstill {
public:
  // `pending`: those who are not done, and live.
  void look(const std::vector<int> &pending);

private:
  int64_t lastPolls[kMostRanks] = {}, lastPoints[kMostRanks] = {};
  std::vector<int> lastPending;
  int quietRounds = 0;
};

} // namespace heddle::ranks

#endif
