// The query gradient on its way to d_q: sums in fp32 in the workspace, which key tiles add to. Those of one head are
// kSumSplits arrays of [rows, kSumColumns], in pieces of 16 bytes: groups of eight rows follow each other, in a group
// 16 columns follow each other, and of those the rows with four pieces each. Piece c of 16 columns holds columns 2c, 2c
// + 1, 2c + 8 and 2c + 9, as a lane holds them, so that a warp adds 512 bytes in a row.
// Traits: kBlockM, kSumColumns (a multiple of 16), kSumSplits, kOrderRate.
#pragma once

#include "Backward/dq_layout.cuh"
#include "Backward/row_statistics.cuh"

namespace heddle {

// Rows of one head and split: whole tiles, since additions come from whole tiles.
template <class K> DEV int32_t sumRows(int32_t seqlenQ) { return (seqlenQ + K::kBlockM - 1) / K::kBlockM * K::kBlockM; }

// Where the first piece of a row is, in floats. `row` counts all rows of all heads and splits, which come one after the
// other.
template <class K> DEV int64_t sumPlace(int32_t row) {
  static_assert(K::kSumColumns % kSumGroupColumns == 0, "sums lie in groups of 16 columns");
  return static_cast<int64_t>(row / kSumRowGroup) * (kSumRowGroup * K::kSumColumns) +
         row % kSumRowGroup * kSumGroupColumns;
}

template <class K> DEV int32_t firstSumRow(int32_t batch, int32_t heads, int32_t head, int32_t split, int32_t seqlenQ) {
  return ((batch * heads + head) * K::kSumSplits + split) * sumRows<K>(seqlenQ);
}

// Where they are added in order (sm90_dq_order.cuh), for each tile a word: twice as many as key tiles have had their
// turn, plus kOrderHasSums if one of them had something to add. Behind those of all heads one more counts the blocks
// that began.
constexpr uint32_t kOrderHasSums = 1;
template <class K> constexpr int32_t kOrderRate = K::kOrderRate > 0 ? K::kOrderRate : 1;

template <class K> DEV int32_t orderWord(int32_t headOfAll, int32_t seqlenQ, const ClassTile &tile) {
  return statisticsTile<K>(0, 0, headOfAll, seqlenQ, tile);
}

} // namespace heddle
