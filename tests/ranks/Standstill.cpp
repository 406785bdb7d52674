//===- Standstill.cpp - rounds ----------------------------------------------------------===//
#include "Standstill.h"

namespace heddle::ranks {

constexpr int64_t kStepNanoseconds = 31'000'000'000; // more than the default limit
// In the first round what can be sent is sent, in the second it is taken, in the third the sender knows.
constexpr int kQuietRounds = 5;

void Standstill::look(const std::vector<int> &pending) {
  bool isNew = pending != lastPending || pending.empty();
  for (int number : pending) {
    const RankNumbers &numbers = board().ranks[number];
    if (numbers.points != lastPoints[number])
      isNew = true;
    else if (numbers.polls < lastPolls[number] + 2) // the last one of them began after the last round
      return;
  }
  for (int number : pending) {
    lastPolls[number] = board().ranks[number].polls;
    lastPoints[number] = board().ranks[number].points;
  }
  lastPending = pending;
  quietRounds = isNew ? 0 : quietRounds + 1;
  if (quietRounds < kQuietRounds)
    return;
  quietRounds = 0;
  board().now += kStepNanoseconds;
}

} // namespace heddle::ranks
