// q, k and v as e4m3, each head with a scale of its own, in one launch: a head's magnitudes are read from memory, its
// elements a second time out of the second-level cache, before others have taken their place there. Needs, before it
// in the source: prelude.cuh, struct KernelTraits.
//
// Blocks take numbers from a counter. Of number n a block reads the magnitudes of piece n and converts piece n - lead,
// whose head has pieces of lower numbers only: both are loaded at once, so that reads of memory, of the cache and stores
// go on side by side, and a block waits only for lower numbers, which blocks that run have taken before. Of those that
// wait the one with the lowest number finds all it waits for. The largest magnitude of a head does not depend on the
// order; so bits do not.
//
// KernelTraits, all `static constexpr int`:
//   kWarps, kMinBlocks   warps of one block, blocks of one SM
//   kHeads               heads whose pieces are numbered in turn
//   kUnits               units of eight elements of each of the two pieces that a thread holds
//   kEvictFirst          1: what is read the second time and what is written need not stay in the cache
//   kConvertsE4m3        1: there is an instruction that rounds to e4m3
//   kHeadDim, kValueDim  multiples of 16
//   Element              of q, k and v
//   kSmemControl         where the words lie that the threads of a block exchange
//   kSmemColumns         where columns of a step's rows lie, if k is smoothed
// Launch: grid.x = any number of blocks; block = 32 * kWarps; counters are zero.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/warp.cuh"
#include "Quantize/quantize_columns.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

constexpr int kThreads = 32 * KernelTraits::kWarps;
constexpr int kUnits = KernelTraits::kUnits;
constexpr float kLargestE4m3 = 448.0f;
constexpr float kLeastDescale = 1.17549435e-38f; // 2^-126, whose reciprocal is finite

// What a number stands for. In shared memory: one is filled while some threads are at work on the one before, and others
// on that before it.
struct Turn {
  PiecePlace measured, converted;
  int32_t isEnd;
  int32_t isLast;                      // what is measured is the last piece of its head to be so
  float factor;                        // of what is converted
  float largest[KernelTraits::kWarps]; // of what is measured, by each warp
};
constexpr int kTurns = 3;
static_assert(kTurns * sizeof(Turn) <= quantize::kControlBytes, "Quantize.cpp reserves it");

// Lanes of different warps that look after what is not elements: where there are several, they wait side by side.
constexpr int kTaker = 0, kAsker = 32 % kThreads, kTeller = 64 % kThreads;

template <int Dim, bool IsLast> DEV void loadRows(const PiecePlace &place, Unit (&units)[kUnits]) {
  const UnitPlace<Dim> own;
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const char *from = place.from + own.row(unit) * place.fromBytes + own.column * kElementBytes;
#pragma unroll
    for (int piece = 0; piece < kUnitPieces; ++piece) {
      uint32_t words[4] = {0, 0, 0, 0};
      if (own.isIn(place.rows, unit))
        ptx::loadPassing16<IsLast>(from + piece * kPieceBytes, words);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        units[unit][4 * piece + word] = words[word];
    }
  }
}

// What is subtracted from the columns of a unit: nothing, or means that another block has written.
DEV void loadMeans(const float *mean, UnitValues &values) {
#pragma unroll
  for (int i = 0; i < quantize::kUnitElements / 4; ++i) {
    float own[4];
    ptx::loadGlobal16(mean + 4 * i, own);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[4 * i + e] = own[e];
  }
}

template <int Dim, bool IsSmoothed>
DEV void storeRows(const PiecePlace &place, const Unit (&units)[kUnits], float factor) {
  const UnitPlace<Dim> own;
  UnitValues mean;
  if constexpr (IsSmoothed)
    loadMeans(place.mean + own.column, mean);
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    UnitValues values;
    valuesOf(units[unit], values);
    if constexpr (IsSmoothed)
#pragma unroll
      for (int e = 0; e < quantize::kUnitElements; ++e)
        values[e] -= mean[e];
    uint32_t bytes[2];
    convert(values, factor, bytes);
    if (own.isIn(place.rows, unit))
      ptx::storePassing8<KernelTraits::kEvictFirst != 0>(place.to + own.row(unit) * place.toBytes + own.column,
                                                         bytes[0], bytes[1]);
  }
}

constexpr bool kDimsDiffer = KernelTraits::kHeadDim != KernelTraits::kValueDim;

template <bool IsLast> DEV void load(const PiecePlace &place, Unit (&units)[kUnits]) {
  if (kDimsDiffer && place.isOfValues)
    loadRows<KernelTraits::kValueDim, IsLast>(place, units);
  else
    loadRows<KernelTraits::kHeadDim, IsLast>(place, units);
}

DEV void store(const PiecePlace &place, const Unit (&units)[kUnits], float factor) {
  if (place.mean)
    storeRows<KernelTraits::kHeadDim, true>(place, units, factor);
  else if (kDimsDiffer && place.isOfValues)
    storeRows<KernelTraits::kValueDim, false>(place, units, factor);
  else
    storeRows<KernelTraits::kHeadDim, false>(place, units, factor);
}

DEV void takeNumber(const KernelParams &p, Turn &turn) {
  const int32_t number = static_cast<int32_t>(ptx::addGlobal(p.counters, 1));
  turn.measured = placeOf(p, number);
  turn.converted = placeOf(p, number - p.lead);
  turn.isEnd = number >= p.pieces + p.lead;
}

DEV void measure(const Unit (&units)[kUnits], Turn &turn) {
  const int32_t bits = ptx::largestOfWarp(__float_as_int(largestOf(units))); // bits ascend with numbers from 0 on
  if (threadIdx.x % 32 == 0)
    turn.largest[threadIdx.x / 32] = __int_as_float(bits);
}

// What the block has measured.
DEV void publish(const Turn &turn) {
  float largest = 0;
#pragma unroll
  for (int warp = 0; warp < KernelTraits::kWarps; ++warp)
    largest = fmaxf(largest, turn.largest[warp]);
  ptx::raiseGlobal(turn.measured.counters, __float_as_uint(largest));
  ptx::addRelease(turn.measured.counters + 1, 1);
}

// The same of columns, by all threads, behind a barrier.
DEV void publishColumns(Turn &turn) {
  const PiecePlace &place = turn.measured;
  const bool isTeller = threadIdx.x == kTeller;
  if (isTeller)
    turn.isLast = ptx::addAcquireRelease(place.counters + 1, 1) + 1 == static_cast<uint32_t>(place.piecesOfHead);
  __syncthreads();
  if (!turn.isLast)
    return;
  settleColumns(place);
  __syncthreads();
  if (isTeller)
    ptx::addRelease(place.counters + 1, 1);
}

// When all pieces of the head are known: what its elements are multiplied by.
DEV float factorOf(const PiecePlace &place) {
  while (ptx::loadAcquire4(place.counters + 1) != static_cast<uint32_t>(place.settledAt))
    ;
  const float largest = __uint_as_float(ptx::loadAcquire4(place.counters));
  const float descale = largest > 0 ? fmaxf(largest / kLargestE4m3, kLeastDescale) : 1.0f;
  if (place.descale)
    *place.descale = descale;
  return 1.0f / descale;
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(32 * KernelTraits::kWarps, KernelTraits::kMinBlocks)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  using namespace heddle;
  extern __shared__ __align__(128) unsigned char sharedMemory[];
  Turn *const turns = reinterpret_cast<Turn *>(sharedMemory + KernelTraits::kSmemControl);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == kTaker)
    takeNumber(p, turns[0]);
  __syncthreads();
  for (int own = 0, next = 1; !turns[own].isEnd; own = next, next = (next + 1) % kTurns) {
    Turn &turn = turns[own];
    Unit measured[kUnits], converted[kUnits];
    load<false>(turn.measured, measured); // of no rows where there is no piece
    load<KernelTraits::kEvictFirst != 0>(turn.converted, converted);
    if (thread == kTaker)
      takeNumber(p, turns[next]);
    if (thread == kAsker && turn.converted.counters)
      turn.factor = factorOf(turn.converted);
    const bool isSmoothed = turn.measured.columns;
    if (isSmoothed)
      measureColumns(turn.measured, measured, reinterpret_cast<float *>(sharedMemory + KernelTraits::kSmemColumns));
    else
      measure(measured, turn);
    __syncthreads();
    if (isSmoothed)
      publishColumns(turn);
    else if (thread == kTeller && turn.measured.counters)
      publish(turn);
    store(turn.converted, converted, turn.factor);
  }
}
