// What deltas of gradient(detached) are made of: of each branch and row the sums of P dP and of P over its keys, which
// a walk over key tiles leaves before the gradients. In arrays as those of row_statistics.cuh, first the products of
// all branches, then the weights.
#pragma once

#include "Backward/query_tile.cuh"
#include "Backward/row_statistics.cuh"

namespace heddle {

// heddle_backward_preprocess leaves the gradient of lse in the place of delta where branches are detached.
DEV float deltaOfBranch(float products, float weights, float dLse) {
  return (weights == 0.f ? 0.f : products / weights) - dLse;
}

// Where the sums of a tile's first row lie.
template <class K> struct BranchSums {
  const float *products, *weights;

  DEV BranchSums(const ParamsOf<K> &p, int32_t batch, const QueryTile &tile, const ClassTile &place) {
    const int32_t heads = p.batch * p.heads, head = batch * p.heads + tile.head;
    products = p.branchSums + statisticsPlace<K>(heads, tile.branch(), head, p.seqlenQ, place);
    weights =
        p.branchSums + statisticsPlace<K>(heads, K::Pattern::kBranchCount + tile.branch(), head, p.seqlenQ, place);
  }
};

} // namespace heddle
