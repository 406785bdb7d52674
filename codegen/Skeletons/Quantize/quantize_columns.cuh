// Smoothing of k: the mean of each column of a head is subtracted from it, which adds the same number to all scores of a
// query. Each block adds what it finds of a column to words of the head: a sum of whole multiples of 2^-20, and the
// largest numbers, so that neither depends on the order. The block that comes last makes of them the means and the
// largest magnitude of what is left. All threads of the block call each of these together.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/streams.cuh"
#include "Quantize/quantize_params.cuh"
#include "Quantize/quantize_pieces.cuh"
#include "Quantize/quantize_rotation.cuh"
#include "Quantize/quantize_units.cuh"

namespace heddle {

enum class Column { sum, largest, largestNegated };

constexpr float kLargestSum = 1073741824.0f, kSumUnits = 1048576.0f; // of a block: 2^30, in units of 2^-20

// Words that ascend with numbers; 0 is below all.
DEV uint32_t ascending(float value) {
  const uint32_t bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
DEV float numberOf(uint32_t word) { return __uint_as_float(word & 0x80000000u ? word & 0x7fffffffu : ~word); }

template <class K> DEV uint32_t *endsOf(const PiecePlace<K> &place, int32_t block, int column) {
  return place.ends + (static_cast<int64_t>(block) * K::kHeadDim + column) * quantize::kWordsOfEnds;
}

template <Column Which> DEV void combine(float &all, float value) {
  if constexpr (Which == Column::sum)
    all += value;
  else
    all = fmaxf(all, value);
}

// Columns of a thread are kColumnStep apart; of a warp that has no elements there are none.
template <class K> DEV int firstColumn() {
  return static_cast<int>(threadIdx.x) < K::kUnitThreads ? static_cast<int>(threadIdx.x) : K::kHeadDim;
}

template <Column Which> DEV float startOf() { return Which == Column::sum ? 0.0f : -INFINITY; }

// Over this thread's rows of a piece; what is not finite does not count.
template <Column Which, class K, int Units>
DEV void columnsOf(const PiecePlace<K> &place, const Unit<K> (&units)[Units], UnitValues &all) {
  const UnitPlace<K, K::kHeadDim> own;
#pragma unroll
  for (int e = 0; e < quantize::kUnitElements; ++e)
    all[e] = startOf<Which>();
#pragma unroll
  for (int unit = 0; unit < Units; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
#pragma unroll
    for (int e = 0; e < quantize::kUnitElements; ++e)
      if (own.isIn(place.rows, unit) && fabsf(values[e]) < INFINITY)
        combine<Which>(all[e], Which == Column::largestNegated ? -values[e] : values[e]);
  }
}

// The same of rows that are rotated for it, element by element.
template <class K, int Units, class Visit>
DEV void visitRotated(const PiecePlace<K> &place, const float *signs, const Unit<K> (&units)[Units], Visit visit) {
  const UnitPlace<K, K::kHeadDim> own;
  UnitValues ownSigns;
  loadSigns(own, signs, ownSigns);
#pragma unroll
  for (int unit = 0; unit < Units; ++unit) {
    UnitValues values;
    valuesOf<K>(units[unit], values);
    rotate<K>(ownSigns, {}, values);
#pragma unroll
    for (int e = 0; e < quantize::kUnitElements; ++e)
      if (own.isIn(place.rows, unit) && fabsf(values[e]) < INFINITY)
        visit(e, values[e]);
  }
}

template <Column Which> DEV void addColumn(uint32_t *words, float all) {
  if constexpr (Which == Column::sum) {
    const float units = fminf(fmaxf(all, -kLargestSum), kLargestSum) * kSumUnits;
    ptx::addGlobal8(reinterpret_cast<uint64_t *>(words), static_cast<int64_t>(rintf(units)));
  } else if (all > -INFINITY) {
    ptx::raiseGlobal(words + (Which == Column::largest ? 2 : 3), ascending(all));
  }
}

// Where what is found of a column is added: of its head, and the ends of a block with a scale of its own, to that.
template <Column Which, class K> DEV void addColumn(const PiecePlace<K> &place, int column, float all) {
  if constexpr (K::kScaleRows > 0 && Which != Column::sum)
    addColumn<Which>(endsOf(place, place.block, column) - quantize::kWordsOfEnds, all);
  else
    addColumn<Which>(place.columns + column * quantize::kWordsOfColumn, all);
}

// `rows`: in shared memory, a row of columns for each row of a step. `all`: what this thread has of them.
template <Column Which, bool IsRotated, class K>
DEV void addColumns(const PiecePlace<K> &place, const UnitValues &all, float *rows) {
  constexpr int kDim = K::kHeadDim;
  const UnitPlace<K, kDim> own;
  if (own.firstRow < kStepRows<K, kDim>)
#pragma unroll
    for (int e = 0; e < quantize::kUnitElements; ++e)
      rows[own.firstRow * kDim + own.template columnOf<IsRotated>(e)] = all[e];
  __syncthreads();
  for (int column = firstColumn<K>(); column < kDim; column += K::kUnitThreads) {
    float whole = startOf<Which>();
    for (int row = 0; row < kStepRows<K, kDim>; ++row)
      combine<Which>(whole, rows[row * kDim + column]);
    addColumn<Which>(place, column, whole);
  }
  __syncthreads();
}

template <Column Which, class K, int Units>
DEV void measureColumn(const PiecePlace<K> &place, const Unit<K> (&units)[Units], float *rows) {
  UnitValues all;
  columnsOf<Which>(place, units, all);
  addColumns<Which, false>(place, all, rows);
}

// Rows are rotated twice: what is found of columns in one go takes more registers than a thread has.
template <class K, int Units>
DEV void measureRotatedColumns(const PiecePlace<K> &place, const float *signs, const Unit<K> (&units)[Units],
                               float *rows) {
  UnitValues sums, largest, largestNegated;
#pragma unroll
  for (int e = 0; e < quantize::kUnitElements; ++e) {
    sums[e] = startOf<Column::sum>();
    largest[e] = largestNegated[e] = startOf<Column::largest>();
  }
  visitRotated(place, signs, units, [&](int e, float value) { combine<Column::sum>(sums[e], value); });
  addColumns<Column::sum, true>(place, sums, rows);
  visitRotated(place, signs, units, [&](int e, float value) {
    combine<Column::largest>(largest[e], value);
    combine<Column::largestNegated>(largestNegated[e], -value);
  });
  addColumns<Column::largest, true>(place, largest, rows);
  addColumns<Column::largestNegated, true>(place, largestNegated, rows);
}

template <class K, int Units>
DEV void measureColumns(const QuantizeParams<K> &p, const PiecePlace<K> &place, const Unit<K> (&units)[Units],
                        float *rows) {
  if constexpr (K::kRotates) {
    measureRotatedColumns(place, p.rotation, units, rows);
  } else {
    measureColumn<Column::sum>(place, units, rows);
    measureColumn<Column::largest>(place, units, rows);
    measureColumn<Column::largestNegated>(place, units, rows);
  }
}

// When all pieces of the head have been added: its means, and the largest magnitude of what is left of it.
template <class K> DEV void settleColumns(const PiecePlace<K> &place) {
  for (int column = firstColumn<K>(); column < K::kHeadDim; column += K::kUnitThreads) {
    uint32_t sum[2], ends[2];
    ptx::loadCoherent8(place.columns + column * quantize::kWordsOfColumn, sum);
    ptx::loadCoherent8(place.columns + column * quantize::kWordsOfColumn + 2, ends);
    const int64_t units = static_cast<int64_t>(static_cast<uint64_t>(sum[1]) << 32 | sum[0]);
    const float mean = static_cast<float>(static_cast<double>(units) / kSumUnits / max(place.rowsOfHead, 1));
    place.mean[column] = mean;
    const float left = fmaxf(numberOf(ends[0]) - mean, numberOf(ends[1]) + mean);
    if (ends[0] != 0 && left < INFINITY)
      ptx::raiseGlobal(place.counters, __float_as_uint(fmaxf(left, 0.0f)));
  }
}

// The same where blocks have scales of their own: behind the means, each warp looks at other blocks.
template <class K> DEV void settleMeans(const PiecePlace<K> &place) {
  for (int column = firstColumn<K>(); column < K::kHeadDim; column += K::kUnitThreads) {
    uint32_t sum[2];
    ptx::loadCoherent8(place.columns + column * quantize::kWordsOfColumn, sum);
    const int64_t units = static_cast<int64_t>(static_cast<uint64_t>(sum[1]) << 32 | sum[0]);
    place.mean[column] = static_cast<float>(static_cast<double>(units) / kSumUnits / max(place.rowsOfHead, 1));
  }
}

template <class K> DEV void settleBlocks(const PiecePlace<K> &place) {
  if (static_cast<int>(threadIdx.x) >= K::kUnitThreads)
    return;
  for (int32_t block = threadIdx.x / 32; block < place.blocks; block += K::kWarps) {
    float largest = 0;
    for (int column = threadIdx.x % 32; column < K::kHeadDim; column += 32) {
      uint32_t ends[2];
      ptx::loadCoherent8(endsOf(place, block, column), ends);
      const float mean = place.mean[column];
      const float left = fmaxf(numberOf(ends[0]) - mean, numberOf(ends[1]) + mean);
      if (ends[0] != 0 && left < INFINITY)
        largest = fmaxf(largest, left);
    }
    const int32_t bits = ptx::largestOfWarp(__float_as_int(largest));
    if (threadIdx.x % 32 == 0)
      ptx::raiseGlobal(place.firstCounters + block * quantize::kWordsOfHead, static_cast<uint32_t>(bits));
  }
}

} // namespace heddle
