// Fields of a configuration and what follows from them: registers, columns of the query gradient, shared memory.
#pragma once

#include "codegen/Config/ConfigView.h"
#include "codegen/Config/Constraint.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

namespace heddle {

struct KernelRequest;
struct LaunchPlan;

namespace sm90 {
constexpr int64_t kLeastRegisters = 24, kMostRegisters = 240, kRegisterStep = 8;
constexpr int64_t kPoolRegisters = 3 * 168; // of three warpgroups at their launch, for each thread of one
} // namespace sm90

struct Sm90BackwardConfig {
  int64_t blockM = 64;                     ///< queries of a step
  int64_t blockN = 128;                    ///< keys of a block
  int64_t stages = 2;                      ///< tiles of q and of d_out in shared memory
  int64_t reduce = sm90::kReduceWarpgroup; ///< how the query gradient comes about (sm90_layout.cuh)
  int64_t producerRegisters = 24; ///< of a thread of the producing warpgroup, after launch; the others get the rest
  int64_t longSplit = 1;          ///< blocks that share one of the first items of a head if it is long
  int64_t rasterReversed = 0;     ///< 1: last key tile first
  int64_t rasterMib = 32;         ///< what the heads that run side by side read and add, in MiB

  Sm90BackwardConfig() = default;
  Sm90BackwardConfig(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  bool splitsColumns() const { return blockM == sm90::kConsumerRows; }
  bool hasTeams() const { return longSplit > 1; }
  bool walksQueries() const { return reduce == sm90::kReduceNone; }
  bool isOrdered() const { return reduce == sm90::kReduceOrdered; }
  bool hasReducer() const { return reduce == sm90::kReduceWarpgroup || isOrdered(); }

  static const FieldsOf<Sm90BackwardConfig> &fields() {
    using C = Sm90BackwardConfig;
    static const FieldsOf<C> list = {
        "sm90_backward",
        {{"block_m", &C::blockM, sm90::kConsumerRows, sm90::kMaxKeys},
         {"block_n", &C::blockN, sm90::kConsumerRows, sm90::kMaxKeys},
         {"stages", &C::stages, 2, 4},
         {"reduce",
          &C::reduce,
          sm90::kReduceRegisters,
          sm90::kReduceOrdered,
          {"registers", "warpgroup", "walk", "ordered"}},
         {"producer_registers", &C::producerRegisters, sm90::kLeastRegisters, sm90::kMostRegisters},
         {"long_split", &C::longSplit, 1, sm90::kMaxTeam},
         {"raster_reversed", &C::rasterReversed, 0, 1, noOrYes()},
         {"raster_mib", &C::rasterMib, 1, kLargestField}}};
    return list;
  }
};

/// Heads wider than mostJointDim() have two consumers that hold d_k and d_v of the same 64 keys (sm90_wide_consumer.cuh),
/// those of floats wherever a block has 64 keys.
int64_t mostJointDim(const KernelRequest &request);
bool needsTwo(const KernelRequest &request);
bool isWide(const KernelRequest &request, const Sm90BackwardConfig &config);

/// One of the two consumers hands P to the other, which makes dS of it.
bool passesWeights(const KernelRequest &request, const Sm90BackwardConfig &config);

int64_t consumersOf(const KernelRequest &request, const Sm90BackwardConfig &config);
int64_t consumerRegisters(const KernelRequest &request, const Sm90BackwardConfig &config);

/// Of a thread in walks over key tiles (sm90_query_walk.cuh), whose consumers hold fewer sums.
struct WalkRegisters {
  int64_t producer, consumer;
};
WalkRegisters walkRegisters(const KernelRequest &request, const Sm90BackwardConfig &config);

/// Columns that a consumer computes at a time of the query gradient: all, or a part that begins and ends in one column
/// of 64 elements of the tile of keys, or at its borders.
int64_t sumColumns(const KernelRequest &request, const Sm90BackwardConfig &config);
int64_t sumSplits(const KernelRequest &request, const Sm90BackwardConfig &config);

/// The rates of both walks: `query` are those of keys, as in KernelRequest::transposed.
MapRates backwardRates(const KernelRequest &request);

SmemLayout backwardSmem(const KernelRequest &request, const Sm90BackwardConfig &config);

const std::vector<Constraint> &sm90BackwardConstraints();

/// Sm90BackwardPlan.cpp.
LaunchPlan sm90BackwardPlan(const KernelRequest &request, const Sm90BackwardConfig &config);

} // namespace heddle
