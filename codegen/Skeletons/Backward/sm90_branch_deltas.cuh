// Deltas of gradient(detached): that of a branch is what d_out * out would be of the branch alone, the sum of P dP over
// its pairs divided by the sum of P, less the gradient of lse. A walk over key tiles as in sm90_query_walk.cuh, which
// takes the branches one after the other, with S and dP alone.
#pragma once

#include "Backward/sm90_query_walk.cuh"
#include "Shared/quads.cuh"

namespace heddle {

template <class K> class BranchDeltas {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using QueryTileHeader = heddle::QueryTileHeader<K>;

public:
  static constexpr bool kHasTeams = false;

  DEV BranchDeltas(const Params &p, const QueryItem<K> &item, int32_t consumer)
      : p(p), item(item), rows(p, item, consumer), keys(kReads), branch(0) {}

  DEV void run(const CtaTeamShare<K> &) {
    if (K::kIsWide && threadIdx.x >= kWarpgroupThreads)
      return; // the first consumer takes all tiles
    rows.readStatistics();
    clear();
    ptx::waitParity(K::kKeysFull, 0);
    ptx::waitParity(K::kValuesFull, 0);
#pragma unroll 1
    for (;;) {
      const QueryTileHeader tile = QueryTileHeader::await(keys);
      finishBranches(tile.isEnd() ? Pattern::kBranchCount : tile.branch());
      if (tile.isEnd())
        return;
      addTile(tile);
      keys.release();
      keys.of(typename K::OutRing()).release();
      keys.next();
    }
  }

private:
  DEV void clear() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      weights[half] = weighted[half] = 0.f;
  }

  DEV void addTile(const QueryTileHeader &tile) {
    typename K::Scores scores, products;
    keys.of(typename K::OutRing()).waitFull();
    ptx::forget(scores);
    ptx::forget(products);
    ptx::fenceMma();
    startScores<K, K::kHeadSteps>(scores, rows.own(K::kKeyTile), K::kQueryTile + keys.slot() * K::kQueryTileBytes);
    startScores<K, K::kValueSteps>(products, rows.own(K::kValueTile), K::kOutTile + keys.slot() * K::kOutTileBytes);
    ptx::commitMma();
    ptx::waitMma<0>();
    ptx::pin(scores);
    ptx::pin(products);
    rows.takeScoresBack(scores, keys.slot());
    rows.takeProductsBack(products, keys.slot());
    ScoreFactors<K, K::kQueryTiles> factors;
    rows.makeWeights(factors, scores, tile);
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        weights[slot / 2] += scores[n][slot];
        weighted[slot / 2] = fmaf(scores[n][slot], products[n][slot], weighted[slot / 2]);
      }
  }

  // Stores the deltas of all branches before `next`. Those without a tile have 0, which no weight meets.
  DEV void finishBranches(int32_t next) {
#pragma unroll 1
    for (; branch < next; ++branch) {
      const int32_t rate = Pattern::Transposed::queryRate(item.variant, branch);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = quadSum(weights[half]), product = quadSum(weighted[half]);
        const float dLse = rows.statistic(p.delta, 0, K::kQueryRates[0], half);
        if (threadIdx.x % 4 == 0 && rows.row(half) <= item.last)
          p.sums[rows.place(branch, rate, half)] = sum == 0.f ? 0.f : product / sum - dLse;
      }
      clear();
    }
  }

  const Params &p;
  const QueryItem<K> &item;
  QueryRows<K> rows;
  Pipeline<K::kStages, typename K::QueryRing> keys;
  int32_t branch; // not finished
  float weights[2], weighted[2];
};

} // namespace heddle
