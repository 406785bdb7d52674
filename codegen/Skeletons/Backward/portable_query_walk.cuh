// Walks over the key tiles of a query item: warps have queries, whose scores have queries in rows. Nothing is added in
// memory, so bits do not depend on the run. QueryWalk makes d_q, where key tiles do not add to its sums; DeltaWalk what
// the deltas of detached branches are made of, before anything else.
#pragma once

#include "Backward/portable_backward_products.cuh"
#include "Backward/query_rows.cuh"
#include "Shared/quads.cuh"

namespace heddle {

class RowsOfQueries : protected WarpRows<QueryItem> {
public:
  using Item = QueryItem;

protected:
  DEV RowsOfQueries(const KernelParams &p, const QueryItem &item, uint32_t shared) : WarpRows(p, item, shared) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        lse[i][half] = p.lse[place(0, KernelTraits::kQueryRates[0], i, half)];
  }

  DEV int32_t row(int i, int half) const { return firstRow(i) + item.rate * half * 8; }
  DEV bool rowExists(int i, int half) const { return row(i, half) <= item.last; }

  // Where an array of row_statistics.cuh has a row.
  DEV int64_t place(int32_t set, int32_t rate, int i, int half) const {
    return placeOfRow(p, item, row(i, half), set, rate);
  }
  DEV int64_t branchPlace(int32_t set, int32_t branch, int i, int half) const {
    return place(set, TransposedPattern::queryRate(item.variant, branch), i, half);
  }

  DEV void makeWeights(Scores &scores, KeyFactors &factors, const TileRing<QueryItem> &ring,
                       const QueryTile &tile) const {
    makeScores(scores, ring);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      makeRowWeights(
          factors[i], scores[i], [&] { return QueryPlace(p, item, tile, firstRow(i)); }, tile.isMasked(), p.scaleLog2,
          lse[i]);
  }

private:
  float lse[kRowTiles][2]; // of the lane's rows
};

class QueryWalk : RowsOfQueries {
public:
  using Item = QueryItem;

  DEV QueryWalk(const KernelParams &p, const QueryItem &item, uint32_t shared) : RowsOfQueries(p, item, shared) {
    readDeltas(0);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      clearTile(queryGradient[i]);
  }

  DEV void step(const TileRing<QueryItem> &ring, const QueryTile &tile) {
    Scores weights, products;
    KeyFactors factors;
    ScoreOperand gradients;
    if (Pattern::kIsDetached)
      readDeltas(tile.branch());
    makeWeights(weights, factors, ring, tile);
    makeProducts(products, ring);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      makeRowGradients(gradients[i], products[i], weights[i], factors[i], delta[i]);
    mmaSum<KernelTraits::kSmemRowBytesQK>(queryGradient, gradients,
                                          ring.rows() + summedRows(KernelTraits::kSmemRowBytesQK));
  }

  DEV void finish() const {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      storeTensor<KernelTraits::kHeadDim, kAddsToQueries>(p.rowGradient, p.rowGradientStride, queryGradient[i], i,
                                                          p.scaleLog2 * kLogOf2);
  }

private:
  DEV void readDeltas(int32_t branch) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        delta[i][half] = p.delta[place(0, KernelTraits::kQueryRates[0], i, half)];
        if constexpr (Pattern::kIsDetached)
          delta[i][half] =
              deltaOfBranch(p.branchSums[branchPlace(branch, branch, i, half)],
                            p.branchSums[branchPlace(Pattern::kBranchCount + branch, branch, i, half)], delta[i][half]);
      }
  }

  float delta[kRowTiles][2];
  float queryGradient[kRowTiles][kSliceTiles<KernelTraits::kHeadDim>][4];
};

// Tiles of a branch follow each other.
class DeltaWalk : RowsOfQueries {
public:
  using Item = QueryItem;

  DEV DeltaWalk(const KernelParams &p, const QueryItem &item, uint32_t shared)
      : RowsOfQueries(p, item, shared), branch(0), sums() {}

  DEV void step(const TileRing<QueryItem> &ring, const QueryTile &tile) {
    finishBranches(tile.branch());
    Scores weights, products;
    KeyFactors factors;
    makeWeights(weights, factors, ring, tile);
    makeProducts(products, ring);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          RowSums &row = sums[i][slot / 2];
          row.weights += weights[i][n][slot];
          row.products = fmaf(weights[i][n][slot], products[i][n][slot], row.products);
        }
  }

  DEV void finish() { finishBranches(Pattern::kBranchCount); }

private:
  struct RowSums {
    float products, weights;
  };

  // All before `next`, of which some may have no tile.
  DEV void finishBranches(int32_t next) {
#pragma unroll 1
    for (; branch < next; ++branch)
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const RowSums row = {quadSum(sums[i][half].products), quadSum(sums[i][half].weights)};
          sums[i][half] = RowSums{0.f, 0.f};
          if (warpSlice() == 0 && threadIdx.x % 4 == 0 && rowExists(i, half)) {
            p.branchSums[branchPlace(branch, branch, i, half)] = row.products;
            p.branchSums[branchPlace(Pattern::kBranchCount + branch, branch, i, half)] = row.weights;
          }
        }
  }

  int32_t branch; // not finished
  RowSums sums[kRowTiles][2];
};

} // namespace heddle
