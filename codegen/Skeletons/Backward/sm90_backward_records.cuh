// What the warps of a block of the Hopper backward kernel tell each other beside the tiles: the barriers of the rings,
// and what is said of query tiles and turns. Read alike by NVRTC and by the host's compiler.
#pragma once

#include "Shared/shared_records.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {
namespace sm90 {

constexpr int kMaxBackwardStages = 4;
// Tiles of dS, and of P between consumers of wide heads: one is written while the other may still be read.
constexpr int kScoreStages = 2;
constexpr int kTurnStages = 4; // turns that are taken and not passed on yet (sm90_dq_order.cuh)

// Of each query of a tile: lse in log2 units, delta, and of raised rows what those of q and of d_out are to be multiplied
// by. In a walk over query tiles these are the records of keys.
constexpr int kRowStatistics = 2, kRaisedRowStatistics = 4;
static_assert(kRaisedRowStatistics * 4 == kKeyFactorBytes, "as many bytes as records of keys have");

struct alignas(16) QueryTileRecord {
  int32_t firstRow, flags, head, unused; // as of QueryTile
};
struct TurnRecord {
  int32_t word, hasSums; // as of Turn
};

template <int Stages> struct BackwardRecords {
  Barrier keysFull, valuesFull;
  RingBarriers<Stages> queries, outs;
  RingBarriers<kScoreStages> scores; // of dS; empty where a reducer reads it
  QueryTileRecord tiles[Stages];
  int32_t teamWord;    // blocks of a team that arrived before
  int32_t blockNumber; // blocks that began before
  Barrier turnTaken[kTurnStages], turnAdded[kTurnStages], turnEmpty[kTurnStages];
  TurnRecord turns[kTurnStages];
  RingBarriers<kScoreStages> weights; // of P, where it is passed
};
static_assert(sizeof(BackwardRecords<kMaxBackwardStages>) <= kBarrierBytes,
              "barriers and records fit the region planned for them");

} // namespace sm90
} // namespace heddle
