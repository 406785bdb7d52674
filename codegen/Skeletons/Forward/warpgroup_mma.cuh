// The two mma of one consumer warpgroup: scores of its 64 rows for one key tile, and out += P V. Tiles
// lie in shared memory as columns of 128 bytes of each row, swizzled over 128 bytes; values of bytes and of floats as rows of
// keys for each of their dimensions (sm90_transposer.cuh says in which order, or they arrive so).
#pragma once

#include "Shared/float_pairs.cuh"
#include "Forward/key_columns.cuh"
#include "Ptx/warpgroup_mma.cuh"
#include "Shared/elements.cuh"
#include "Shared/row_stores.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

// Values as they arrive, a row of dimensions for each key.
template <class Traits> struct ArrivedValues {
  using Columns = ColumnPairs<Traits>;
  static constexpr bool kAreTurned = false;
  static constexpr int kSumTiles = 0;       // of the output, behind the values
  static constexpr bool kSumsApart = false; // made by products of their own, of rows of ones at kOnes
  static constexpr uint32_t kOnes = 0;

  DEV static uint64_t operand(uint32_t values, int step) {
    return ptx::sharedOperand<Traits::kBlockN * kColumnRowBytes>(values, step * Traits::kMmaStep * kColumnRowBytes);
  }
  template <int Steps, int Tiles, class Pack>
  DEV static void packWeights(uint32_t (&weights)[1][Steps][4], const float (&scores)[1][Tiles][4], int n, int half,
                              const Pack &pack) {
    weights[0][n / 2][n % 2 * 2 + half] = pack(scores[0][n][2 * half], scores[0][n][2 * half + 1]);
  }
};

// The same of pairs, the weights' too: big ones in the first tile of rows, small ones in the second.
template <class Traits> struct PairedValues : ArrivedValues<Traits> {
  DEV static uint64_t operand(uint32_t values, int step, int part) {
    constexpr int kPartBytes =
        pairedDim(Traits::kValueDim, kPairColumn) / 2 / kPairColumn * Traits::kBlockN * kColumnRowBytes;
    return ArrivedValues<Traits>::operand(values + part * kPartBytes, step);
  }
  template <int Steps, int Tiles, class Pack>
  DEV static void packWeights(uint32_t (&weights)[2][Steps][4], const float (&scores)[1][Tiles][4], int n, int half,
                              const Pack &pack) {
    const int word = n % 2 * 2 + half;
    splitPairs(scores[0][n][2 * half], scores[0][n][2 * half + 1], weights[0][n / 2][word], weights[1][n / 2][word]);
  }
};

// Values that were turned over, a row of keys for each dimension (sm90_transposer.cuh). Behind them are ones, whose
// products are the sums of the weights, as they are rounded, in all columns.
template <class Traits> struct TurnedBytes {
  using Columns = ColumnFours<Traits>;
  static constexpr bool kAreTurned = true;
  static constexpr int kSumTiles = 1;
  static constexpr bool kSumsApart = false;
  static constexpr uint32_t kOnes = 0;

  DEV static uint64_t operand(uint32_t values, int step) { return ptx::sharedOperand<0>(values, step * kMmaBytes); }
  // Takes two tiles at once: the keys of a word lie in both.
  template <int Steps, int Tiles, class Pack>
  DEV static void packWeights(uint32_t (&weights)[1][Steps][4], const float (&scores)[1][Tiles][4], int n, int half,
                              const Pack &pack) {
    if (n % 2 != 0)
      return;
    const auto &first = scores[0][n], &second = scores[0][n + 1];
    weights[0][n / 4][n / 2 % 2 * 2 + half] =
        pack(first[2 * half], first[2 * half + 1], second[2 * half], second[2 * half + 1]);
  }
};

// Values that lie key-major in memory arrive so, in their order; that of the scores is EvenKeysFirst.
template <class Traits> struct KeyMajorBytes : TurnedBytes<Traits> {
  using Columns = ColumnPairs<Traits>;
  static constexpr bool kAreTurned = false;

  // Takes two tiles at once: even keys of a word are in the first one, odd ones in the second.
  template <int Steps, int Tiles, class Pack>
  DEV static void packWeights(uint32_t (&weights)[1][Steps][4], const float (&scores)[1][Tiles][4], int n, int half,
                              const Pack &pack) {
    if (n >= Tiles / 2)
      return;
    const auto &even = scores[0][n], &odd = scores[0][n + Tiles / 2];
    weights[0][n / 2][n % 2 * 2 + half] = pack(even[2 * half], odd[2 * half], even[2 * half + 1], odd[2 * half + 1]);
  }
};

// As TurnedBytes of floats, whose rows of keys take several columns of 128 bytes, and whose ones all tiles share. The tensor cores
// cut what they sum towards 0: of 128k keys 0.08% are lost, of the values and of the weights alike.
template <class Traits> struct TurnedFloats {
  using Columns = ColumnPairs<Traits>;
  static constexpr bool kAreTurned = true;
  static constexpr int kSumTiles = 1;
  static constexpr bool kSumsApart = true;
  static constexpr uint32_t kOnes = kSharedBase + Traits::kSmemOnes;

  DEV static uint64_t operand(uint32_t values, int step) {
    constexpr int kStepsPerColumn = kColumnRowBytes / kMmaBytes;
    return ptx::sharedOperand<0>(values, step / kStepsPerColumn * (Traits::kValueDim * kColumnRowBytes) +
                                             step % kStepsPerColumn * kMmaBytes);
  }
  // Rounded by half of the lowest bit that counts; weights are not negative, and one that is NaN stays it.
  template <int Steps, int Tiles, class Pack>
  DEV static void packWeights(uint32_t (&weights)[1][Steps][4], const float (&scores)[1][Tiles][4], int n, int half,
                              const Pack &pack) {
#pragma unroll
    for (int e = 0; e < 2; ++e)
      weights[0][n][2 * e + half] = min(__float_as_uint(scores[0][n][2 * half + e]) + kHalfOfTf32, kNanBits);
  }
};

template <class Traits, class E, bool AreKeyMajor = (Traits::kKeyMajorValues > 0)> struct ValuesOf {
  using Type = ArrivedValues<Traits>;
};
template <class Traits> struct ValuesOf<Traits, E4m3, false> {
  using Type = TurnedBytes<Traits>;
};
template <class Traits> struct ValuesOf<Traits, E4m3, true> {
  using Type = KeyMajorBytes<Traits>;
};
template <class Traits, bool AreKeyMajor>
struct ValuesOf<Traits, FastE4m3, AreKeyMajor> : ValuesOf<Traits, E4m3, AreKeyMajor> {};
template <class Traits> struct ValuesOf<Traits, Tf32, false> {
  using Type = TurnedFloats<Traits>;
};
template <class Traits> struct ValuesOf<Traits, FloatPair, false> {
  using Type = PairedValues<Traits>;
};

template <int Tiles, bool AreValuesKeyMajor> struct KeyColumnsOf {
  using Type = KeysInOrder;
};
template <int Tiles> struct KeyColumnsOf<Tiles, true> {
  using Type = EvenKeysFirst<Tiles>;
};

// Shapes of the products of one warp of the warpgroup, and what it has of them.
template <class Traits> struct WarpgroupProducts : Traits {
  using Values = typename ValuesOf<Traits, typename Traits::Element>::Type;

  using Product = typename ProductElement<typename Traits::Element>::Type;

  static constexpr bool kArePairs = ProductElement<typename Traits::Element>::kIsOfPairs;
  static constexpr int kParts = ProductElement<typename Traits::Element>::kParts; // of an element: big and small
  static constexpr int kTileHeadDim = kArePairs ? pairedDim(Traits::kHeadDim, kPairStep) : Traits::kHeadDim;
  static constexpr int kTileValueDim = kArePairs ? pairedDim(Traits::kValueDim, kPairColumn) : Traits::kValueDim;

  static constexpr int kRowTiles = 1; // of 16 rows
  static constexpr int kChunkN = Traits::kBlockN;
  static constexpr int kScoreTiles = Traits::kBlockN / 8;
  using KeyColumns = typename KeyColumnsOf<kScoreTiles, (Traits::kKeyMajorValues > 0)>::Type;
  static constexpr int kKeySteps = Traits::kBlockN / Traits::kMmaStep;
  static constexpr int kHeadSteps = (Traits::kHeadDim + Traits::kMmaStep - 1) / Traits::kMmaStep;
  static constexpr int kValueTiles = Traits::kValueDim / 8;
  static constexpr int kOutputTiles = kValueTiles + Values::kSumTiles;

  // Of pairs a thread holds twice the output and twice the weights.
  static constexpr bool kOverlapsTiles = !kArePairs || overlapsPairs(Traits::kValueDim);

  using Scores = float[kRowTiles][kScoreTiles][4];
  using Probabilities = uint32_t[kParts][kKeySteps][4];
  using Output = float[kRowTiles][kOutputTiles][4];
};

// Starts scores = Q K^T.
template <class K> DEV void startScores(typename K::Scores &scores, uint32_t query, uint32_t keys) {
  using Mma = ptx::WarpgroupMma<K::kBlockN, typename K::Product>;
  using Parts = PartProducts<K::kParts>;
  constexpr uint32_t kQueryColumn = K::kBlockM * kColumnRowBytes, kKeyColumn = K::kBlockN * kColumnRowBytes;
  const auto operand = [](uint32_t tile, uint32_t columnBytes, int step) {
    constexpr int kStepsPerColumn = kColumnRowBytes / kMmaBytes;
    return ptx::sharedOperand<0>(tile, step / kStepsPerColumn * columnBytes + step % kStepsPerColumn * kMmaBytes);
  };
  ptx::startSum<Mma, Parts::kCount * K::kHeadSteps>(
      scores[0],
      [&](int i) {
        return operand(query, kQueryColumn, Parts::ofA(i / K::kHeadSteps) * K::kHeadSteps + i % K::kHeadSteps);
      },
      [&](int i) {
        return operand(keys, kKeyColumn, Parts::ofB(i / K::kHeadSteps) * K::kHeadSteps + i % K::kHeadSteps);
      });
}

// `Count` tiles of accumulators, from the first one on.
template <int Count, int Tiles>
DEV float (&tilesFrom(float (&tiles)[Tiles][4], int first))
    [Count][4] { return reinterpret_cast<float (&)[Count][4]>(tiles[first]); }

// Starts out += P V.
template <class K>
DEV void addOutput(typename K::Output &out, const typename K::Probabilities &weights, uint32_t values) {
  constexpr int kSumsApart = K::Values::kSumsApart ? K::Values::kSumTiles : 0, kTiles = K::kOutputTiles - kSumsApart;
  using Mma = ptx::WarpgroupMma<kTiles * 8, typename K::Product>;
#pragma unroll
  for (int step = 0; step < K::kKeySteps; ++step) {
    Mma::ofRegisters(tilesFrom<kTiles>(out[0], 0), weights[0][step], K::Values::operand(values, step));
    if constexpr (kSumsApart > 0)
      ptx::WarpgroupMma<kSumsApart * 8, typename K::Product>::ofRegisters(
          tilesFrom<kSumsApart>(out[0], kTiles), weights[0][step], ptx::sharedOperand<0>(K::Values::kOnes, 0));
  }
}

// Starts out = P V of pairs.
template <class K>
DEV void makeOutput(typename K::Output &out, const typename K::Probabilities &weights, uint32_t values) {
  using Mma = ptx::WarpgroupMma<K::kOutputTiles * 8, typename K::Product>;
  using Parts = PartProducts<K::kParts>;
  Mma::template ofRegisters<false>(out[0], weights[Parts::ofA(0)][0], K::Values::operand(values, 0, Parts::ofB(0)));
#pragma unroll
  for (int i = 1; i < Parts::kCount * K::kKeySteps; ++i) {
    const int product = i / K::kKeySteps, step = i % K::kKeySteps;
    Mma::template ofRegisters<true>(out[0], weights[Parts::ofA(product)][step],
                                    K::Values::operand(values, step, Parts::ofB(product)));
  }
}

} // namespace heddle
