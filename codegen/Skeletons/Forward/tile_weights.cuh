// How a consumer makes weights of the scores of a tile: by exponentials, which it sums, or as codes.
#pragma once

#include "Forward/weight_codes.cuh"

namespace heddle {

// What a step knows of the weights of a tile.
template <class K, bool AreCodes = K::kWeightsAreCodes> class TileWeights {
public:
  // Before they are taken.
  template <class Scale> DEV void find(RowState<K> &rows, Scores<K> &scores, const Scale &scale) {
    scoresToWeights(rows, scores, scale, sums);
  }
  template <class Scale>
  DEV void take(Probabilities<K> &weights, const RowState<K> &, const Scores<K> &scores, const Scale &) {
    packWeights<K>(weights, scores);
  }
  DEV bool mayNotFit() const { return heddle::mayNotFit<K>(sums); }
  DEV void fit(RowState<K> &rows, Scores<K> &scores, Probabilities<K> &weights, RowValues<K> &factor) {
    fitWeights(rows, scores, sums, factor);
    packWeights<K>(weights, scores);
  }
  DEV void addTo(RowState<K> &rows) const { addSumsOfTile(rows, sums); }
  // Behind all tiles: sums are those of the weights.
  DEV static void endSums(RowState<K> &) {}
  // The rows must be computed again, with every maximum looked for.
  DEV static bool haveOverflowed(const RowState<K> &rows) { return hasOverflowed(rows); }

private:
  RowValues<K> sums;
};
template <class K> class TileWeights<K, true> {
public:
  template <class Scale> DEV void find(RowState<K> &, Scores<K> &, const Scale &) {}
  template <class Scale>
  DEV void take(Probabilities<K> &weights, const RowState<K> &rows, const Scores<K> &scores, const Scale &scale) {
    codes.make(weights, rows, scores, scale);
  }
  DEV bool mayNotFit() const { return codes.mayNotFit(); }
  DEV void fit(RowState<K> &rows, Scores<K> &, Probabilities<K> &weights, RowValues<K> &factor) {
    codes.fit(rows, weights, factor);
  }
  DEV void addTo(RowState<K> &) const {}
  // Products have summed them. Pinned here: made where they are used, they cost some kernels a register that they have not.
  DEV static void endSums(RowState<K> &rows) {
    const bool isFirst = threadIdx.x % 4 == 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.sum[0][half] = isFirst ? rows.out[0][K::kOutputTiles - 1][2 * half] : 0.f;
      ptx::pin(rows.sum[0][half]);
    }
  }
  DEV static bool haveOverflowed(const RowState<K> &rows) { return hasLostCodes(rows); }

private:
  WeightCodes<K> codes;
};

} // namespace heddle
