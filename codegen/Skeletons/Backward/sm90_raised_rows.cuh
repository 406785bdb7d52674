// Floats of Hopper's backward kernels: rows come raised, each by a power of two (raise_rows.cuh), so that fp16 holds them.
// S and dP are multiplied by what their rows and columns have. In sums over rows such a factor goes into the weight of the
// row; then each row of weights is raised, which the sum of one tile takes back. That sum begins at 0 and is added in
// registers, as tensor cores cut what they sum towards 0.
#pragma once

#include "Backward/sm90_backward_products.cuh"
#include "Shared/float_pairs.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// Of a lane's two rows: of q and d_out, or of k and v.
struct RowFactors {
  float first[2], second[2];
};

// Those of the keys that a lane's rows are, the second of which is 8 * rate further.
template <class K> DEV RowFactors keyFactorsOf(const ParamsOf<K> &p, const KeyItem<K> &item, int32_t firstKey) {
  RowFactors factors;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t key = min(firstKey + half * 8 * item.rate, item.last);
    const int64_t number = (static_cast<int64_t>(item.batch) * p.kvHeads + item.kvHead) * p.seqlenK + key;
    float record[kKeyFactorBytes / 4];
    ptx::loadGlobal16(p.keyFactors + number * (kKeyFactorBytes / 4), record);
    factors.first[half] = record[0];
    factors.second[half] = record[1];
  }
  return factors;
}

// Of the keys that a lane's columns are, in records of kKeyFactorBytes.
struct KeyFactorColumns {
  uint32_t from;

  DEV void read(int n, float (&values)[2]) const {
#pragma unroll
    for (int e = 0; e < 2; ++e)
      values[e] = __int_as_float(ptx::loadShared4(from + (n * 8 + e) * kKeyFactorBytes));
  }
};

// Scores of raised rows as they are.
template <int Tiles, class Columns>
DEV void takeBack(float (&scores)[Tiles][4], const Columns &columns, const float (&ofRows)[2]) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n) {
    float ofColumns[2];
    columns.read(n, ofColumns);
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      scores[n][slot] *= ofColumns[slot % 2] * ofRows[slot / 2];
  }
}

// dP in two sums, each of half of the steps, as tensor cores cut a sum after every step, towards 0, and dS may be a small
// difference of dP and delta; in a group of its own.
template <class K>
DEV void startProducts(typename K::Scores &products, typename K::Scores &rest, uint32_t rows, uint32_t queries) {
  constexpr int kFirst = (K::kValueSteps + 1) / 2;
  ptx::forget(products);
  ptx::fenceMma();
  startScores<K, K::kValueSteps, 0, kFirst>(products, rows, queries);
  if constexpr (K::kValueSteps > 1) {
    ptx::forget(rest);
    startScores<K, K::kValueSteps, kFirst, K::kValueSteps>(rest, rows, queries);
  }
  ptx::commitMma();
}

// Once it is complete.
template <class K> DEV void joinProducts(typename K::Scores &products, typename K::Scores &rest) {
  ptx::pin(products);
  if constexpr (K::kValueSteps > 1) {
    ptx::pin(rest);
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        products[n][slot] += rest[n][slot];
  }
}

// Weights of raised rows as an operand; sums of its rows are to be multiplied by ofSums.
template <class K> struct RaisedOperand {
  uint32_t parts[K::kParts][K::kQuerySteps][4];
  float ofSums[2];

  template <class Columns> DEV RaisedOperand(const typename K::Scores &weights, const Columns &columns) {
    typename K::Scores values;
    float largest[2] = {0.f, 0.f};
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      float ofColumns[2];
      columns.read(n, ofColumns);
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        values[n][slot] = weights[n][slot] * ofColumns[slot % 2];
        largest[slot / 2] = fmaxf(largest[slot / 2], fabsf(values[n][slot]));
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const PairScale scale(quadMax(largest[half]));
      ofSums[half] = scale.ofPairs;
#pragma unroll
      for (int n = 0; n < K::kQueryTiles; ++n) {
        uint32_t words[K::kParts];
        splitInto(words, values[n][2 * half] * scale.ofRow, values[n][2 * half + 1] * scale.ofRow);
#pragma unroll
        for (int part = 0; part < K::kParts; ++part)
          parts[part][n / 2][n % 2 * 2 + half] = words[part];
      }
    }
  }
};

// Starts sum = weights times rows, in a group of its own.
template <class K, int N> DEV void startRaisedSum(float (&sum)[N][4], const RaisedOperand<K> &weights, uint32_t rows) {
  using Mma = ptx::WarpgroupMma<N * 8, typename K::Product>;
  using Products = PartProducts<K::kParts>;
  constexpr uint32_t kPartBytes = tileBytes(K::kBlockM, N * 8, K::kElementBytes);
  ptx::forget(sum);
  ptx::fenceMma();
#pragma unroll
  for (int product = 0; product < Products::kCount; ++product)
#pragma unroll
    for (int step = 0; step < K::kQuerySteps; ++step) {
      const auto &a = weights.parts[Products::ofA(product)][step];
      const uint64_t b = ptx::sharedOperand<K::kBlockM * kColumnRowBytes>(rows, Products::ofB(product) * kPartBytes +
                                                                                    step * kStepRowBytes<K>);
      if (product == 0 && step == 0)
        Mma::template ofRegisters<false>(sum, a, b);
      else
        Mma::template ofRegisters<true>(sum, a, b);
    }
  ptx::commitMma();
}

template <int N> DEV void addRaised(float (&total)[N][4], const float (&sum)[N][4], const float (&ofSums)[2]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      total[n][slot] = fmaf(sum[n][slot], ofSums[slot / 2], total[n][slot]);
}

} // namespace heddle
