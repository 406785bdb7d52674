// Totals of the output of bytes. The tensor cores align each product with the sum that it is added to and cut what lies
// more than some 13 bits below its first: of 768 equal products 0.1% of the sum are lost, of 8,192 already 15%, of 16,384 37% (H100).
// So every kFlushTiles key tiles, or one more where a run ends, a consumer adds its output to totals in fp32, which each
// thread keeps for itself, and begins again: in shared memory, or in the workspace, where rows are seldom so long. Sums of the weights are products with ones, cut as others are: v = 1 gives 1.
#pragma once

#include "Forward/forward_rows.cuh"
#include "Forward/online_softmax.cuh"
#include "Forward/sm90_shared.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

template <class K> constexpr bool kHasTotals = K::kFlushTiles > 0;

// Pieces of four floats that a thread keeps, of which those of a warpgroup lie behind each other. In memory nobody waits for
// them before the end of an item: they are added where they lie, and come back many at a time.
template <class K, bool InWorkspace> class OwnPieces {
public:
  static constexpr bool kAreAdded = false;
  using Place = uint32_t; // of a thread's first piece, asked for where all are gone through
  DEV OwnPieces(const ParamsOf<K> &, int32_t consumer) : first(K::kTotals + consumer * K::kConsumerTotalBytes) {}
  DEV Place place() const { return first + ptx::rereadWarpgroupThread() * 16; }
  DEV static void load(Place at, int32_t piece, float (&values)[4]) { ptx::loadShared16(at + piece * kStep, values); }
  DEV static void store(Place at, int32_t piece, float a, float b, float c, float d) {
    ptx::storeShared16(at + piece * kStep, a, b, c, d);
  }

private:
  static constexpr uint32_t kStep = kWarpgroupThreads * 16;
  uint32_t first;
};
template <class K> class OwnPieces<K, true> {
public:
  static constexpr bool kAreAdded = true;
  using Place = const OwnPieces &; // pointers are made anew for every piece: one that is kept spills
  DEV OwnPieces(const ParamsOf<K> &p, int32_t consumer) : p(p), consumer(consumer) {}
  DEV Place place() const { return *this; }
  DEV static void load(Place at, int32_t piece, float (&values)[4]) { ptx::loadGlobal16(at.pointer(piece), values); }
  DEV static void store(Place at, int32_t piece, float a, float b, float c, float d) {
    ptx::storeGlobal16(at.pointer(piece), true, a, b, c, d);
  }
  DEV static void add(Place at, int32_t piece, float a, float b, float c, float d) {
    ptx::addGlobal16(at.pointer(piece), true, a, b, c, d);
  }

private:
  DEV float *pointer(int32_t piece) const {
    const int64_t warpgroup = static_cast<int64_t>(blockIdx.x) * K::kConsumers + consumer;
    return p.totals + warpgroup * (K::kConsumerTotalBytes / 4) +
           (piece * kWarpgroupThreads + ptx::rereadWarpgroupThread()) * 4;
  }
  const ParamsOf<K> &p;
  int32_t consumer;
};

template <class K> class Totals {
  using Pieces = OwnPieces<K, K::kTotalsInWorkspace>;
  using Place = typename Pieces::Place;

public:
  DEV Totals(const ParamsOf<K> &p, int32_t consumer) : pieces(p, consumer) {}

  // An item begins.
  DEV void begin() {
    room = K::kFlushTiles;
    areThere = 0;
  }

  // With what an earlier call has for its rows, as if these had been tiles of the item: few calls have a carry, and in a loop
  // it takes a fifteenth less of the compile time than in the accumulators. rows hold no product yet; a sink is forgotten.
  DEV void continueFromCarry(RowState<K> &rows, const ParamsOf<K> &p, const LaneRows<K> &lane, float descale) {
    const Place at = pieces.place();
    const CarriedRow<K> first(p, lane, 0, 0, descale), second(p, lane, 0, 1, descale);
#pragma unroll 1
    for (int n = 0; n < K::kValueTiles; ++n) {
      float low[2], high[2];
      first.load(n, low);
      second.load(n, high);
      Pieces::store(at, n, low[0], low[1], high[0], high[1]);
    }
    Pieces::store(at, K::kValueTiles, first.rowMax, second.rowMax, first.sum, second.sum);
    first.begin(rows, 0, 0); // sums of weights as they are: those that out is divided by are totals
    second.begin(rows, 0, 1);
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      rows.out[0][K::kOutputTiles - 1][slot] = 0.f;
    areThere = 1;
  }

  // For the product of one tile more; the output is complete.
  DEV void makeRoom(RowState<K> &rows) {
    if (room <= 0) {
      if constexpr (Pieces::kAreAdded)
        addInPlace(rows);
      else if (areThere)
        exchange<true>(rows);
      else
        exchange<false>(rows);
      areThere = 1;
      room = K::kFlushTiles;
    }
    --room;
  }

  // For the product of the last tile of a run, which joins those before it where there is no room.
  DEV void takeRoom() { --room; }

  // Behind a run, and before the first one: if no other follows, rows are the totals, else there is room. One text for both,
  // 6% of the compile time less than room made before each last product.
  DEV void endRun(RowState<K> &rows, bool isLast) {
    if (!isLast && room > 0)
      return;
    if (areThere)
      addAll(rows);
    if (isLast)
      return;
    exchange<false>(rows);
    areThere = 1;
    room = K::kFlushTiles;
  }

private:
  DEV void addAll(RowState<K> &rows) const {
    const Place at = pieces.place();
    const Ends before(at);
    float factor[2];
    before.findFactor(factor, rows);
#pragma unroll
    for (int first = 0; first < K::kValueTiles; first += kTogetherAtEnd)
      addTotals<kTogetherAtEnd>(rows, first, at, factor);
    before.addSums(rows, factor);
  }

  // Tiles that a thread has registers for beside all else, and when all scores are gone.
  static constexpr int kTogether = K::Values::kAreTurned ? 2 : 1;
  static constexpr int kTogetherAtEnd = Pieces::kAreAdded ? 8 : kTogether;

  // The last piece: what totals are relative to, and their sums of weights.
  struct Ends {
    float at[4];

    DEV explicit Ends(Place pieces) { Pieces::load(pieces, K::kValueTiles, at); }
    DEV static void store(Place pieces, const RowState<K> &rows) {
      const auto &sums = rows.out[0][K::kOutputTiles - 1];
      Pieces::store(pieces, K::kValueTiles, rows.rowMax[0][0], rows.rowMax[0][1], sums[0], sums[2]);
    }
    DEV void findFactor(float (&factor)[2], const RowState<K> &rows) const {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        factor[half] = ptx::exp2Approx(at[half] - rows.rowMax[0][half]);
    }
    DEV void addSums(RowState<K> &rows, const float (&factor)[2]) const {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float &sum = rows.out[0][K::kOutputTiles - 1][2 * half];
        sum = fmaf(at[2 + half], factor[half], sum);
      }
    }
  };

  // Of some tiles from the first one on, whose pieces are on their way at the same time.
  template <int Together> DEV static void addTotals(RowState<K> &rows, int first, Place at, const float (&factor)[2]) {
    float totals[Together][4];
#pragma unroll
    for (int n = 0; n < Together; ++n)
      if (first + n < K::kValueTiles)
        Pieces::load(at, first + n, totals[n]);
#pragma unroll
    for (int n = 0; n < Together; ++n)
      if (first + n < K::kValueTiles)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          float &out = rows.out[0][first + n][slot];
          out = fmaf(totals[n][slot], factor[slot / 2], out);
        }
  }

  // The output goes to the totals, which are added to it first if there are any, and is nothing again.
  template <bool HasTotals> DEV void exchange(RowState<K> &rows) const {
    const Place at = pieces.place();
    float factor[2];
    if constexpr (HasTotals) {
      const Ends before(at);
      before.findFactor(factor, rows);
      before.addSums(rows, factor);
    }
    Ends::store(at, rows);
#pragma unroll
    for (int first = 0; first < K::kValueTiles; first += kTogether) {
      if constexpr (HasTotals)
        addTotals<kTogether>(rows, first, at, factor);
#pragma unroll
      for (int n = first; n < min(first + kTogether, K::kValueTiles); ++n) {
        const auto &out = rows.out[0][n];
        Pieces::store(at, n, out[0], out[1], out[2], out[3]);
      }
    }
    clearOutput(rows);
  }

  // The same in memory: totals become relative to the row maxima of now, if they are not, and the output is added to them.
  DEV void addInPlace(RowState<K> &rows) const {
    const Place at = pieces.place();
    float factor[2] = {};
    if (areThere) {
      const Ends before(at);
      before.findFactor(factor, rows);
      before.addSums(rows, factor);
    }
    Ends::store(at, rows);
    if (!__all_sync(kWholeWarp, factor[0] == 1 && factor[1] == 1))
      scaleTotals(at, factor);
#pragma unroll
    for (int n = 0; n < K::kValueTiles; ++n) {
      const auto &out = rows.out[0][n];
      Pieces::add(at, n, out[0], out[1], out[2], out[3]);
    }
    clearOutput(rows);
  }

  // Seldom, so in a loop. What was there before the first totals of an item is nothing.
  DEV void scaleTotals(Place at, const float (&factor)[2]) const {
#pragma unroll 1
    for (int n = 0; n < K::kValueTiles; ++n) {
      float totals[4] = {};
      if (areThere)
        Pieces::load(at, n, totals);
      Pieces::store(at, n, totals[0] * factor[0], totals[1] * factor[0], totals[2] * factor[1], totals[3] * factor[1]);
    }
  }

  Pieces pieces;
  int32_t room;     // tiles that the output may still take
  int32_t areThere; // not 0: totals of this item
};

} // namespace heddle
