// What blocks tell each other of a head: magnitudes that they have found, and when all are known. Traits:
// kWarps, kRotates, and what quantize_columns.cuh does.
#pragma once

#include "Ptx/warp.cuh"
#include "Quantize/quantize_columns.cuh"
#include "Quantize/quantize_params.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_rotation.cuh"
#include "Quantize/quantize_rows.cuh"
#include "Shared/elements.cuh"

namespace heddle {

constexpr float kLeastDescale = 1.17549435e-38f; // 2^-126, whose reciprocal is finite

// Lanes of different warps, where there are several, that look after what is not elements, side by side.
constexpr int kTaker = 0;
template <class K> constexpr int kTeller = 32 % K::kUnitThreads;
template <class K> constexpr int kAsker = K::kUnitThreads - 32;

// What the threads of a block tell each other of a piece, in shared memory.
template <class K> struct Piece {
  PiecePlace<K> place;
  int32_t number, slot;     // the slot: where its elements lie, if in shared memory
  int32_t isLast;           // it is the last piece of its head to be measured
  float factor;             // by which its elements are multiplied
  float largest[K::kWarps]; // by each warp
};

// In the units of this thread, of what is converted.
template <class K>
DEV float largestOfThread(const QuantizeParams<K> &p, const PiecePlace<K> &place, const Unit<K> (&units)[K::kUnits]) {
  if constexpr (K::kRotates)
    if (!place.isOfValues)
      return largestRotated<K>(p.rotation, units);
  return largestOf<K>(units);
}

template <class K> DEV void measure(const QuantizeParams<K> &p, const Unit<K> (&units)[K::kUnits], Piece<K> &piece) {
  const float largest = largestOfThread(p, piece.place, units);
  const int32_t bits = ptx::largestOfWarp(__float_as_int(largest)); // bits ascend with numbers from 0 on
  if (threadIdx.x % 32 == 0)
    piece.largest[threadIdx.x / 32] = __int_as_float(bits);
}

// What the block has measured.
template <class K> DEV float largestOfPiece(const Piece<K> &piece) {
  float largest = 0;
#pragma unroll
  for (int warp = 0; warp < K::kWarps; ++warp)
    largest = fmaxf(largest, piece.largest[warp]);
  return largest;
}

// Counts the pieces that are in what the piece waits for, and how many that are.
template <class K> DEV uint32_t *arrivalsOf(const PiecePlace<K> &place) {
  if constexpr (K::kScaleRows > 0)
    if (place.columns)
      return place.arrivals;
  return place.counters + 1;
}
template <class K> DEV int32_t piecesOfSmoothed(const PiecePlace<K> &place) {
  if constexpr (K::kScaleRows > 0)
    return place.piecesOfWhole;
  else
    return place.piecesOfHead;
}

// The same of columns, by all threads, behind a barrier.
template <class K> DEV void publishColumns(Piece<K> &piece) {
  static_assert(sizeof(Piece<K>) <= quantize::pieceBytes(K::kWarps, K::kScaleRows), "quantize_layout.cuh reserves it");
  const PiecePlace<K> &place = piece.place;
  const bool isTeller = threadIdx.x == kTeller<K>;
  if (isTeller)
    piece.isLast = ptx::addAcquireRelease(arrivalsOf(place), 1) + 1 == static_cast<uint32_t>(piecesOfSmoothed(place));
  __syncthreads();
  if (!piece.isLast)
    return;
  if constexpr (K::kScaleRows > 0) {
    settleMeans(place);
    __syncthreads();
    settleBlocks(place);
  } else {
    settleColumns(place);
  }
  __syncthreads();
  if (isTeller)
    ptx::addRelease(arrivalsOf(place), 1);
}

// When all pieces of the head are known: what its elements are multiplied by.
template <class K> DEV float factorOf(const PiecePlace<K> &place, uint32_t largestBits) {
  const float largest = __uint_as_float(largestBits);
  const float descale = largest > 0 ? fmaxf(largest / kLargestE4m3, kLeastDescale) : 1.0f;
  if (place.descale)
    *place.descale = descale;
  return 1.0f / descale;
}
template <class K> DEV uint32_t waitForCounted(const PiecePlace<K> &place) {
  while (ptx::loadAcquire4(arrivalsOf(place)) != static_cast<uint32_t>(place.settledAt))
    ;
  return ptx::loadAcquire4(place.counters);
}

} // namespace heddle
