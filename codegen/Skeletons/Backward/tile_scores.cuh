// The chain of scores, its derivative, and the masks of a tile. Branches are compile-time constants of each instance,
// so the generated predicate folds. Tiles are seen through a place, which says what pair an element of a lane is:
// element `slot` of score tile n lies in row slot / 2 (of the lane's two) and column 8 n + slot % 2 (from the lane's
// first).
#pragma once

#include "Backward/argument_gradients.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/elements.cuh"
#include "Shared/lane_columns.cuh"
#include "Shared/tf32_operands.cuh"

namespace heddle {

// The documents of the queries that score tile n of a lane has, as Pattern::scoreDocument gives them.
struct ScoreDocuments {
  int32_t of[4]; // elements
};

template <class Place, int Tiles> DEV void applyScores(float (&scores)[Tiles][4], const Place &place, float scale) {
  using Pattern = typename Place::Pattern;
#pragma unroll
  for (int n = 0; n < Tiles; ++n) {
    const ScoreDocuments documents = place.documents(n);
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      scores[n][slot] = Pattern::score(place.context, place.queryPosition(n, slot), place.keyPosition(n, slot),
                                       documents.of[slot], scores[n][slot] * scale);
  }
}

// Derivatives of the chain of scores, two a word where elements are; nothing where they are 1.
template <class K, int Tiles, bool Exist = K::Pattern::kHasScoreGradient> struct ScoreFactors {};
template <class K, int Tiles> struct ScoreFactors<K, Tiles, true> : ArgumentFactors<Tiles, K::kGradientCount> {
  uint32_t words[Tiles][kAreFloats<K> ? 4 : 2];
};

// Keeps the factors of row `half` in score tile n.
template <class K, int Tiles>
DEV void setFactors(ScoreFactors<K, Tiles, true> &factors, int n, int half, const float (&factor)[2]) {
  if constexpr (kAreFloats<K>) {
    factors.words[n][2 * half] = __float_as_uint(factor[0]);
    factors.words[n][2 * half + 1] = __float_as_uint(factor[1]);
  } else {
    factors.words[n][half] = ptx::packFp16(factor[0], factor[1]);
  }
}
template <class K, int Tiles>
DEV void getFactors(const ScoreFactors<K, Tiles, true> &factors, int n, int half, float (&factor)[2]) {
  if constexpr (kAreFloats<K>) {
    factor[0] = __uint_as_float(factors.words[n][2 * half]);
    factor[1] = __uint_as_float(factors.words[n][2 * half + 1]);
  } else {
    ptx::unpackFp16(factors.words[n][half], factor[0], factor[1]);
  }
}

template <class K, class Place, int Tiles>
DEV void packFactors(ScoreFactors<K, Tiles, false> &, const float (&)[Tiles][4], const Place &, float) {}
template <class K, class Place, int Tiles>
DEV void packFactors(ScoreFactors<K, Tiles, true> &factors, const float (&scores)[Tiles][4], const Place &place,
                     float scale) {
  using Pattern = typename K::Pattern;
#pragma unroll
  for (int n = 0; n < Tiles; ++n) {
    const ScoreDocuments documents = place.documents(n);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float factor[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int slot = 2 * half + e;
        factor[e] = Pattern::scoreGradient(place.context, place.queryPosition(n, slot), place.keyPosition(n, slot),
                                           documents.of[slot], scores[n][slot] * scale);
      }
      setFactors(factors, n, half, factor);
    }
  }
  keepArgumentFactors(factors, scores, place, scale);
}

template <class K, int Tiles> DEV void applyFactors(float (&)[Tiles][4], const ScoreFactors<K, Tiles, false> &) {}
template <class K, int Tiles>
DEV void applyFactors(float (&products)[Tiles][4], const ScoreFactors<K, Tiles, true> &factors) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float factor[2];
      getFactors(factors, n, half, factor);
#pragma unroll
      for (int e = 0; e < 2; ++e) { // of a pair that is not kept, a derivative may be anything
        float &product = products[n][2 * half + e];
        product = product == 0.f ? 0.f : product * factor[e];
      }
    }
}

// Operands of mma, of whose steps score tiles of eight columns are the half, or one.
template <class K, int Steps, int Tiles>
DEV void packScores(uint32_t (&operand)[Steps][4], const float (&scores)[Tiles][4]) {
  static_assert(Steps * K::kMmaStep == Tiles * 8, "an operand has all columns");
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (K::kElementBytes == 4)
        setTf32Weights(operand[n], half, scores[n][2 * half], scores[n][2 * half + 1]);
      else
        operand[n / 2][n % 2 * 2 + half] = pack<typename K::Element>(scores[n][2 * half], scores[n][2 * half + 1]);
    }
}

// The inverse, of row `half` in score tile n.
template <class K, int Steps>
DEV void unpackScores(float (&scores)[2], const uint32_t (&operand)[Steps][4], int n, int half) {
  if constexpr (K::kElementBytes == 4) {
    scores[0] = __uint_as_float(operand[n][half]);
    scores[1] = __uint_as_float(operand[n][2 + half]);
  } else {
    K::Element::unpack(operand[n / 2][n % 2 * 2 + half], scores[0], scores[1]);
  }
}

// P as an operand. No weight is above 1, whatever lse was rounded to (row_statistics.cuh).
template <class E, int Steps> DEV void cutWeights(uint32_t (&operand)[Steps][4]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step)
#pragma unroll
    for (int word = 0; word < 4; ++word)
      operand[step][word] = E::smaller(operand[step][word], E::kOnes);
}

template <class Place, int Tiles> DEV void maskMissing(float (&scores)[Tiles][4], const Place &place) {
  const bool exists[2] = {place.rowExists(0), place.rowExists(1)};
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      scores[n][slot] = exists[slot / 2] & place.columnExists(n, slot) ? scores[n][slot] : -INFINITY;
}

// A bit of `kept` for each column of the lane in its row.
template <int Tiles> DEV void maskBits(float (&scores)[Tiles][4], int half, uint32_t kept) {
#pragma unroll
  for (int bit = 0; bit < Tiles * 2; ++bit) {
    float &score = scores[bit / 2][half * 2 + bit % 2];
    score = kept & 1u << bit ? score : -INFINITY;
  }
}

// The columns of a row that lie in the band.
template <int Branch, class Place> DEV uint32_t bandOfRow(const Place &place, int half) {
  const uint32_t word = Place::Functions::template bandColumns<LaneColumns>(place.context, place.variant, Branch,
                                                                            place.rowPosition(half), place.firstColumn);
  return place.rowExists(half) ? word : 0;
}

// What lies in the band stays of a kept tile.
template <int Branch, class Place, int Tiles> DEV void maskBand(float (&scores)[Tiles][4], const Place &place) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    maskBits(scores, half, bandOfRow<Branch>(place, half));
}

template <int Branch, class Place, int Tiles>
DEV void maskRow(float (&scores)[Tiles][4], const Place &place, int half) {
  using Functions = typename Place::Functions;
  const bool exists = place.rowExists(half);
  if constexpr (Functions::kHasKeptColumns[Branch]) {
    const uint32_t word = Functions::template keptColumns<LaneColumns>(place.context, place.variant, Branch,
                                                                       place.rowPosition(half), place.firstColumn);
    maskBits(scores, half, exists ? word : 0);
  } else {
#pragma unroll
    for (int bit = 0; bit < Tiles * 2; ++bit) {
      const int n = bit / 2, slot = half * 2 + bit % 2;
      const bool isKept =
          exists & place.columnExists(n, slot) &
          Place::Pattern::keep(place.context, Branch, place.queryPosition(n, slot), place.keyPosition(n, slot));
      scores[n][slot] = isKept ? scores[n][slot] : -INFINITY;
    }
  }
}

// Pairs are kept or dropped by squares of kSquare rows and columns: one pair speaks for all of them that a warp has.
template <int Branch, class Place, int Tiles> DEV void maskSquares(float (&scores)[Tiles][4], const Place &place) {
  constexpr int kSquare = Place::Kernel::kSquare, kTilesOfSquare = kSquare / 8;
  static_assert(Tiles % kTilesOfSquare == 0 && kSquare % 16 == 0, "a warp's rows lie in one square");
  const bool exists[2] = {place.rowExists(0), place.rowExists(1)};
#pragma unroll
  for (int first = 0; first < Tiles; first += kTilesOfSquare) {
    const bool isKept =
        Place::Pattern::keep(place.context, Branch, place.queryPosition(first, 0), place.keyPosition(first, 0));
#pragma unroll
    for (int n = first; n < first + kTilesOfSquare; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        scores[n][slot] = isKept & exists[slot / 2] & place.columnExists(n, slot) ? scores[n][slot] : -INFINITY;
  }
}

// The same of what lies in the band: a pair in it speaks for all that a lane has of a square.
template <int Branch, class Place, int Tiles>
DEV void maskSquaresInBand(float (&scores)[Tiles][4], const Place &place) {
  using Pattern = typename Place::Pattern;
  constexpr int kSquare = Place::Kernel::kSquare, kBits = kSquare / 4; // of a lane
  static_assert(Tiles * 2 % kBits == 0 && kSquare % 16 == 0, "a warp's rows lie in one square");
  const uint32_t words[2] = {bandOfRow<Branch>(place, 0), bandOfRow<Branch>(place, 1)};
  uint32_t kept = 0;
#pragma unroll
  for (int first = 0; first < Tiles * 2; first += kBits) {
    const uint32_t square = ((1u << kBits) - 1) << first;
    const int half = (words[0] & square) != 0 ? 0 : 1;
    const uint32_t inside = words[half] & square;
    const int32_t bit = __ffs(inside) - 1, n = bit / 2, slot = half * 2 + bit % 2;
    if (inside != 0 && Pattern::keep(place.context, Branch, place.queryPosition(n, slot), place.keyPosition(n, slot)))
      kept |= square;
  }
  maskBits(scores, 0, words[0] & kept);
  maskBits(scores, 1, words[1] & kept);
}

// Pairs that the branch does not keep, and keys and queries that do not exist.
template <int Branch = 0, class Place, int Tiles> DEV void maskScores(float (&scores)[Tiles][4], const Place &place) {
  using K = typename Place::Kernel;
  if constexpr (Branch + 1 < K::Pattern::kBranchCount) {
    if (place.branch != Branch)
      return maskScores<Branch + 1>(scores, place);
  }
  if constexpr (K::kTilesAreWhole == 1) {
    maskMissing(scores, place);
  } else if constexpr (K::kTilesAreWhole == 2) {
    maskBand<Branch>(scores, place);
  } else if constexpr (K::kSquare > 1 && !Place::Functions::kHasKeptColumns[Branch]) {
    if constexpr (K::kSquaresHaveBand)
      maskSquaresInBand<Branch>(scores, place);
    else
      maskSquares<Branch>(scores, place);
  } else {
    maskRow<Branch>(scores, place, 0);
    maskRow<Branch>(scores, place, 1);
  }
}

} // namespace heddle
