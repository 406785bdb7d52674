// What a consumer does beside the products of pairs (float_pairs.cuh): scores are multiplied by what the rows of q and k
// have, weights by what the rows of v have and then, row by row, into the range of fp16. The tensor cores cut what they sum
// towards 0, so the product of a tile begins at 0 and is added to the output in registers. Of elements without parts all of
// it is empty.
#pragma once

#include "Forward/forward_rows.cuh"
#include "Shared/float_pairs.cuh"
#include "Forward/sm90_shared.cuh"

namespace heddle {

template <class K, bool ArePairs> class PairSteps {
  using Params = ParamsOf<K>;

public:
  template <class Of> DEV void begin(const Params &, const Of &) {}
  DEV void scaleScores(Scores<K> &, int32_t) const {}
  DEV void scaleWeights(Scores<K> &, int32_t) {}
  DEV Output<K> &sums(RowState<K> &rows) { return rows.out; }
  DEV void startOutput(RowState<K> &rows, const Probabilities<K> &weights, uint32_t values) {
    addOutput<K>(rows.out, weights, values);
  }
  DEV void add(RowState<K> &) const {}
};

template <class K> class PairSteps<K, true> {
  using Params = ParamsOf<K>;

public:
  // An item begins. `of` has ownItem().
  template <class Of> DEV void begin(const Params &p, const Of &of) {
    const LaneRows<K> lane(p, of.ownItem());
    const float *factors = p.queryFactors + (static_cast<int64_t>(lane.batch) * p.heads + lane.head) * p.seqlenQ;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      ofQueries[half] = factors[min(lane.index(0, half), lane.end - 1)];
  }

  // `slot`: of the key tile.
  DEV void scaleScores(Scores<K> &scores, int32_t slot) const {
    multiply(scores, slot, HEDDLE_OFFSET(KeyFactors, ofKey), ofQueries);
  }

  DEV void scaleWeights(Scores<K> &weights, int32_t slot) {
    constexpr float kOfRows[2] = {1.f, 1.f};
    multiply(weights, slot, HEDDLE_OFFSET(KeyFactors, ofValue), kOfRows);
    RowValues<K> largest;
    laneMax(largest, weights);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const PairScale scale(quadMax(largest[0][half]));
      ofWeights[half] = scale.ofPairs;
#pragma unroll
      for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          weights[0][n][2 * half + e] *= scale.ofRow;
    }
  }

  // What the next product of a tile goes to.
  DEV Output<K> &sums(RowState<K> &) { return ofTile; }
  DEV void startOutput(RowState<K> &, const Probabilities<K> &weights, uint32_t values) {
    makeOutput<K>(ofTile, weights, values);
  }
  DEV void add(RowState<K> &rows) const {
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        rows.out[0][n][slot] = fmaf(ofTile[0][n][slot], ofWeights[slot / 2], rows.out[0][n][slot]);
  }

private:
  // By the factor of each key, at this offset, and of each row.
  DEV static void multiply(Scores<K> &scores, int32_t slot, uint32_t offset, const float (&ofRows)[2]) {
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float ofKey = factorOf(slot, n, e, offset);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          scores[0][n][2 * half + e] *= ofKey * ofRows[half];
      }
  }

  // Of the lane's column e in tile n of eight.
  DEV static float factorOf(int32_t slot, int n, int e, uint32_t offset) {
    const int32_t column = n * 8 + ptx::rereadThreadIndex() % 4 * 2 + e;
    return __int_as_float(ptx::loadShared4(K::keyFactors(slot) + column * kKeyFactorBytes + offset));
  }

  float ofQueries[2], ofWeights[2];
  Output<K> ofTile;
};

} // namespace heddle
