// Which rows of a call a kernel computes. Chained passes go through the rows in rounds, so that what they hand over
// fits into a workspace that does not grow with the sequence; every other kernel computes all rows and has no fields
// for them.
#pragma once

namespace heddle {

template <bool IsPass> struct RowRange {
  DEV int32_t firstRow() const { return 0; }
  DEV int32_t rowCount(int32_t seqlenQ) const { return seqlenQ; }
  DEV int32_t lseRows(int32_t seqlenQ) const { return seqlenQ; }
  DEV int32_t carryRows(int32_t seqlenQ) const { return seqlenQ; }
};

// Rounds begin where tiles of every class do, and end there or with the sequence. The bases of out, lse and carry are
// such that rows have their numbers in the call.
template <> struct RowRange<true> {
  int32_t roundFirst, roundRows;
  int32_t rowsOfLse, rowsOfCarry; // of one head in lse and of one batch element in the carry
  DEV int32_t firstRow() const { return roundFirst; }
  DEV int32_t rowCount(int32_t) const { return roundRows; }
  DEV int32_t lseRows(int32_t) const { return rowsOfLse; }
  DEV int32_t carryRows(int32_t) const { return rowsOfCarry; }
};

template <class K> using PassRows = RowRange<(K::kChainedMib > 0)>;

} // namespace heddle
