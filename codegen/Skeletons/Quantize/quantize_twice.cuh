// Pieces read twice: from memory for their magnitudes, out of the second-level cache for their elements, before others
// have taken their place there.
//
// Of number n a block reads the magnitudes of piece n and converts piece n - lead, whose head has pieces of lower numbers
// only: both are loaded at once, so that reads of memory, of the cache and stores go on side by side, and a block waits
// only for lower numbers, which blocks that run have taken before. Of those that wait the one with the lowest number
// finds all it waits for.
#pragma once

#include "Quantize/quantize_heads.cuh"

namespace heddle {

// What a number stands for. One is filled while some threads are at work on the one before, and others on that before it.
template <class K> struct Turn {
  Piece<K> measured, converted;
  int32_t isEnd;
};
constexpr int kTurns = 3;

template <class K> DEV void takeTurn(const QuantizeParams<K> &p, Turn<K> &turn) {
  const int32_t number = static_cast<int32_t>(ptx::addGlobal(p.counters, 1));
  turn.measured.place = placeOf<K>(p, number);
  turn.converted.place = placeOf<K>(p, number - p.lead);
  turn.isEnd = number >= p.pieces + p.lead;
}

template <class K> DEV void publishCounted(const Piece<K> &piece) {
  ptx::raiseGlobal(piece.place.counters, __float_as_uint(largestOfPiece(piece)));
  ptx::addRelease(piece.place.counters + 1, 1);
}

template <class K> DEV void walkTwice(const QuantizeParams<K> &p, unsigned char *control, float *columnRows) {
  static_assert(kTurns * sizeof(Turn<K>) <= quantize::controlBytes(K::kWarps, 0, K::kScaleRows),
                "quantize_layout.cuh reserves it");
  Turn<K> *const turns = reinterpret_cast<Turn<K> *>(control);
  if (threadIdx.x == kTaker)
    takeTurn(p, turns[0]);
  __syncthreads();
  for (int own = 0, next = 1; !turns[own].isEnd; own = next, next = (next + 1) % kTurns) {
    Turn<K> &turn = turns[own];
    Unit<K> measured[K::kUnits], converted[K::kUnits];
    load<false>(turn.measured.place, measured); // of no rows where there is no piece
    load<K::kEvictFirst != 0>(turn.converted.place, converted);
    if (threadIdx.x == kTaker)
      takeTurn(p, turns[next]);
    if (threadIdx.x == kAsker<K> && turn.converted.place.counters)
      turn.converted.factor = factorOf(turn.converted.place, waitForCounted(turn.converted.place));
    const bool isSmoothed = turn.measured.place.columns;
    if (isSmoothed)
      measureColumns(p, turn.measured.place, measured, columnRows);
    else
      measure(p, measured, turn.measured);
    __syncthreads();
    if (isSmoothed)
      publishColumns(turn.measured);
    else if (threadIdx.x == kTeller<K> && turn.measured.place.counters)
      publishCounted(turn.measured);
    store(p, turn.converted.place, converted, turn.converted.factor);
  }
}

} // namespace heddle
