// Owns the limits of Sm90Forward: the shared memory and the registers that a configuration takes, and the
// named rules that refuse it.
#pragma once

#include "codegen/Config/Constraint.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Forward/Sm90Config.h"

namespace heddle {

struct GpuArch;

namespace sm90 {

inline constexpr int64_t kFloatExponent = 127;        // of elements with the range of fp32
inline constexpr int64_t kMostFlushKeys = 2560;       // of bytes, before their sums go to totals
inline constexpr int64_t kLargestSplitValueDim = 192; // combining wider splits spills: 24 B at 200, 404 B at 248

} // namespace sm90

/// In the order in which they are asked; each may rely on those before it.
const std::vector<Constraint> &sm90Constraints();

/// Barriers, then the rings of Q, K and V, of values that are to be turned over, then what the planning warp notes of
/// lists.
SmemLayout sm90Smem(const KernelRequest &request, const Sm90Config &config);

/// Keys of a tile are a multiple of it.
int64_t sm90KeyStep(const KernelRequest &request);

/// Columns of the product with the values: of scaled elements, sums of the weights are among them.
int64_t sm90OutputDim(const KernelRequest &request);

/// Warps that consume block_m rows, and the producing warpgroup.
int64_t sm90Warps(int64_t blockM);

/// Whether the items of `request` can be cut into parts that are merged afterwards.
bool sm90CanSplit(const KernelRequest &request);

/// Whether one call takes the parameters of all passes, if `config` is chained.
bool sm90CanChain(const KernelRequest &request, const Sm90Config &config);

/// What the producing warpgroup leaves to each thread of the others. blockM and minBlocks are at least one warpgroup
/// and 1.
int64_t sm90ConsumerRegisters(const GpuArch &arch, const Sm90Config &config);

// long rows of all heads first: what they leave to others is shared early
inline constexpr int64_t kAllHeadsMib = 4096;
inline constexpr int64_t kDefaultSplitTiles = 96; // of 48, 64, 96 and 128 the fastest on global rows of 32k keys

/// Feasible for every request that applies; fields that follow from others are not yet derived.
Sm90Config sm90Default(const KernelRequest &request);

/// Takes back choices that other fields do not allow.
void sm90TakeBack(Sm90Config &config);

} // namespace heddle
