// What walks over the key tiles of a query item compute with its rows: a lane has two rows of every score tile.
#pragma once

#include "Backward/tile_places.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// The place of a row of the item in an array of row_statistics.cuh.
template <class K>
DEV int64_t placeOfRow(const ParamsOf<K> &p, const QueryItem<K> &item, int32_t row, int32_t set, int32_t rate) {
  const int32_t known = min(row, item.last);
  return statisticsPlace<K>(p.batch * p.heads, set, item.batch * p.heads + item.head, p.seqlenQ,
                            classTile<K>(known, rate)) +
         known / rate % K::kBlockM;
}

// P = 2^(s - lse), 0 where a pair is not kept. placeOf() is the tile's QueryPlace: made for every use where registers
// are too few to keep one.
template <class K, int Tiles, class PlaceOf>
DEV void makeRowWeights(ScoreFactors<K, Tiles> &factors, float (&scores)[Tiles][4], PlaceOf placeOf, bool isMasked,
                        float scaleLog2, const float (&lse)[2]) {
  using Pattern = typename K::Pattern;
  if constexpr (Pattern::kHasScore) {
    const float natural = scaleLog2 * kLogOf2;
    packFactors(factors, scores, placeOf(), natural);
    applyScores(scores, placeOf(), natural);
  }
  if (isMasked)
    maskScores(scores, placeOf());
  const float scale = Pattern::kHasScore ? kLog2OfE : scaleLog2;
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      scores[n][slot] = weightOf(fmaf(scores[n][slot], scale, -lse[slot / 2]));
}

// P (dP - delta), in the place of dP.
template <int Tiles>
DEV void weighProducts(float (&products)[Tiles][4], const float (&weights)[Tiles][4], const float (&delta)[2]) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      products[n][slot] = weights[n][slot] * (products[n][slot] - delta[slot / 2]);
}

// dS: the same times the derivative of the chain of scores.
template <class K, int Steps, int Tiles>
DEV void makeRowGradients(uint32_t (&gradients)[Steps][4], float (&products)[Tiles][4],
                          const float (&weights)[Tiles][4], const ScoreFactors<K, Tiles> &factors,
                          const float (&delta)[2]) {
  weighProducts(products, weights, delta);
  applyFactors(products, factors);
  packScores<K>(gradients, products);
}

} // namespace heddle
