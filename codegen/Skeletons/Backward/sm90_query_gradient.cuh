// How the query gradient of a step reaches its sums (query_sums.cuh): straight from registers, or through shared memory,
// from where a warp of the producing warpgroup has whole tiles added.
#pragma once

namespace heddle {

// Consumers have rows of their own of the query gradient of a step, [block_m, head_dim], or columns where there are no
// more than 64 rows.
constexpr bool kSplitsColumns = kBlockM == kConsumerRows;
constexpr int kGradientTiles = kSumColumns / 8;
typedef float QueryGradient[kGradientTiles][4];

DEV int32_t splitOf(int32_t consumer) { return kSplitsColumns ? consumer : 0; }
DEV int32_t firstRowOf(int32_t consumer) { return kSplitsColumns ? 0 : consumer * kConsumerRows; }

// Rows of a lane: first and first + 8 * rate of a head, whose sums begin at row `base` of all.
struct SumRows {
  int32_t base, first, rate, end;
};

// Straight from registers.
DEV void addQueryGradient(float *to, const QueryGradient &sums, const SumRows &rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t row = rows.first + half * 8 * rows.rate;
    float *piece = to + sumPlace(rows.base + row) + threadIdx.x % 4 * kSumPieceFloats;
    const bool isPresent = row < rows.end;
#pragma unroll
    for (int n = 0; n < kGradientTiles; n += 2)
      ptx::addGlobal16(piece + n / 2 * kSumGroupFloats, isPresent, sums[n][2 * half], sums[n][2 * half + 1],
                       sums[n + 1][2 * half], sums[n + 1][2 * half + 1]);
  }
}

// Into the consumer's tile in shared memory, which lies like the sums of 64 rows.
DEV void stageQueryGradient(uint32_t tile, const QueryGradient &sums) {
  const uint32_t thread = threadIdx.x % kWarpgroupThreads, warpRow = thread / 32 * 16;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t to = tile + ((warpRow + half * 8) * kSumColumns + thread % 32 * kSumPieceFloats) * 4;
#pragma unroll
    for (int n = 0; n < kGradientTiles; n += 2)
      ptx::storeShared16(to + n / 2 * kSumGroupFloats * 4, sums[n][2 * half], sums[n][2 * half + 1],
                         sums[n + 1][2 * half], sums[n + 1][2 * half + 1]);
  }
}

// A warp of the producing warpgroup for each consumer: adds what the consumer leaves in its tile to the sums.
class GradientWriter {
public:
  DEV GradientWriter(const KernelParams &p, const KeyItem &item, int32_t consumer)
      : p(p), item(item), consumer(consumer), queries(0) {}

  DEV void run() {
    ptx::arriveNamed(kGradientEmpty + consumer, kWriterThreads);
#pragma unroll 1
    for (;;) {
      ptx::waitParity(kQueryFull + 8 * queries.slot(), queries.parity());
      const QueryTileHeader tile = QueryTileHeader::read(queries.slot());
      if (tile.isEnd())
        return;
      if (isLastLane())
        ptx::arrive(kQueryEmpty + 8 * queries.slot());
      queries.next();
      ptx::syncNamed(kGradientFull + consumer, kWriterThreads);
      if (isLastLane())
        add(tile);
      __syncwarp();
      ptx::arriveNamed(kGradientEmpty + consumer, kWriterThreads);
    }
  }

  // By a consumer, which does not wait for the addition.
  DEV static void leave(int32_t consumer, const QueryGradient &sums) {
    ptx::syncNamed(kGradientEmpty + consumer, kWriterThreads);
    stageQueryGradient(kGradientTile + consumer * kGradientTileBytes, sums);
    ptx::fenceShared();
    ptx::arriveNamed(kGradientFull + consumer, kWriterThreads);
  }

private:
  static constexpr int kWriterThreads = kWarpgroupThreads + 32;

  DEV void add(const QueryTileHeader &tile) const {
    const int32_t row = firstSumRow(item.batch, p.heads, tile.head, splitOf(consumer), p.seqlenQ) + tile.firstRow;
    ptx::addBulk(p.sums + static_cast<int64_t>(row + firstRowOf(consumer)) * kSumColumns,
                 kGradientTile + consumer * kGradientTileBytes, kGradientTileBytes);
    ptx::commitBulk();
    ptx::waitBulkReads<0>();
  }

  const KernelParams &p;
  const KeyItem &item;
  int32_t consumer;
  RingCursor<kStages> queries;
};

} // namespace heddle
