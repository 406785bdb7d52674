// Walks over the key tiles of a query item: warps have queries, whose scores have queries in rows. Nothing is added in
// memory, so bits do not depend on the run. QueryWalk makes d_q, where key tiles do not add to its sums; DeltaWalk what
// the deltas of detached branches are made of, before anything else.
#pragma once

#include "Backward/portable_backward_products.cuh"
#include "Backward/query_rows.cuh"
#include "Shared/quads.cuh"

namespace heddle {

template <class K> class RowsOfQueries : protected WarpRows<QueryItem<K>> {
  using Rows = WarpRows<QueryItem<K>>;

public:
  using Item = QueryItem<K>;

protected:
  using Rows::p, Rows::item, Rows::firstRow;
  using Pattern = typename K::Pattern;
  using Params = ParamsOf<K>;
  using Scores = typename K::Scores;
  using KeyFactors = heddle::KeyFactors<K>;

  DEV RowsOfQueries(const Params &p, const Item &item, uint32_t shared) : Rows(p, item, shared) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        lse[i][half] = p.lse[place(0, K::kQueryRates[0], i, half)];
  }

  DEV int32_t row(int i, int half) const { return firstRow(i) + item.rate * half * 8; }
  DEV bool rowExists(int i, int half) const { return row(i, half) <= item.last; }

  // Where an array of row_statistics.cuh has a row.
  DEV int64_t place(int32_t set, int32_t rate, int i, int half) const {
    return placeOfRow(p, item, row(i, half), set, rate);
  }
  DEV int64_t branchPlace(int32_t set, int32_t branch, int i, int half) const {
    return place(set, Pattern::Transposed::queryRate(item.variant, branch), i, half);
  }

  DEV void makeWeights(Scores &scores, KeyFactors &factors, const TileRing<Item> &ring, const QueryTile &tile) const {
    this->makeScores(scores, ring);
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      makeRowWeights(
          factors[i], scores[i], [&] { return QueryPlace<K>(p, item, tile, firstRow(i)); }, tile.isMasked(),
          p.scaleLog2, lse[i]);
  }

private:
  float lse[K::kRowTiles][2]; // of the lane's rows
};

template <class K> class QueryWalk : RowsOfQueries<K> {
  using Rows = RowsOfQueries<K>;
  using Rows::p, Rows::place, Rows::branchPlace;
  using typename Rows::Pattern, typename Rows::Params, typename Rows::Scores, typename Rows::KeyFactors;

public:
  using Item = QueryItem<K>;

  DEV QueryWalk(const Params &p, const Item &item, uint32_t shared) : Rows(p, item, shared) {
    readDeltas(0);
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      this->clearTile(queryGradient[i]);
  }

  DEV void step(const TileRing<Item> &ring, const QueryTile &tile) {
    Scores weights, products;
    KeyFactors factors;
    typename K::ScoreOperand gradients;
    if (Pattern::kIsDetached)
      readDeltas(tile.branch());
    this->makeWeights(weights, factors, ring, tile);
    this->makeProducts(products, ring);
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      makeRowGradients(gradients[i], products[i], weights[i], factors[i], delta[i]);
    mmaSum<K, K::kSmemRowBytesQK>(queryGradient, gradients, ring.rows() + this->summedRows(K::kSmemRowBytesQK));
  }

  DEV void finish() const {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      this->template storeTensor<K::kHeadDim, K::kAddsToQueries>(p.rowGradient, p.rowGradientStride, queryGradient[i],
                                                                 i, p.scaleLog2 * kLogOf2);
  }

private:
  DEV void readDeltas(int32_t branch) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        delta[i][half] = p.delta[place(0, K::kQueryRates[0], i, half)];
        if constexpr (Pattern::kIsDetached)
          delta[i][half] =
              deltaOfBranch(p.branchSums[branchPlace(branch, branch, i, half)],
                            p.branchSums[branchPlace(Pattern::kBranchCount + branch, branch, i, half)], delta[i][half]);
      }
  }

  float delta[K::kRowTiles][2];
  float queryGradient[K::kRowTiles][kSliceTiles<K, K::kHeadDim>][4];
};

// Tiles of a branch follow each other.
template <class K> class DeltaWalk : RowsOfQueries<K> {
  using Rows = RowsOfQueries<K>;
  using Rows::p, Rows::place, Rows::branchPlace, Rows::rowExists;
  using typename Rows::Pattern, typename Rows::Params, typename Rows::Scores, typename Rows::KeyFactors;

public:
  using Item = QueryItem<K>;

  DEV DeltaWalk(const Params &p, const Item &item, uint32_t shared) : Rows(p, item, shared), branch(0), sums() {}

  DEV void step(const TileRing<Item> &ring, const QueryTile &tile) {
    finishBranches(tile.branch());
    Scores weights, products;
    KeyFactors factors;
    this->makeWeights(weights, factors, ring, tile);
    this->makeProducts(products, ring);
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kQueryTiles; ++n)
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
      for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const RowSums row = {quadSum(sums[i][half].products), quadSum(sums[i][half].weights)};
          sums[i][half] = RowSums{0.f, 0.f};
          if (warpSlice<K>() == 0 && threadIdx.x % 4 == 0 && rowExists(i, half)) {
            p.branchSums[branchPlace(branch, branch, i, half)] = row.products;
            p.branchSums[branchPlace(Pattern::kBranchCount + branch, branch, i, half)] = row.weights;
          }
        }
  }

  int32_t branch; // not finished
  RowSums sums[K::kRowTiles][2];
};

} // namespace heddle
