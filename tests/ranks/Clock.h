//===- Clock.h - time of ranks -------------------------------------------------===//
#ifndef HEDDLE_TESTS_RANKS_CLOCK_H
#define HEDDLE_TESTS_RANKS_CLOCK_H

namespace heddle::ranks {

struct RankNumbers;

// From now on the steady clock of this process is Board::now, which its launcher moves, and sleeps take no time.
void standStill();
// What this thread asks of that clock counts as questions of a rank (RankNumbers::polls); null: of nobody.
void countQuestions(RankNumbers *of);

} // namespace heddle::ranks

#endif
