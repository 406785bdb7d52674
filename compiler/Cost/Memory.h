// Owns the arithmetic of memory: bytes of one GPU by component, at the moments of a step in which one of them is largest.
// Beside what is kept of activations (Activations.h) a recompute holds one layer whole.
#pragma once

#include "compiler/Cost/StepTime.h"

#include <array>

namespace heddle::cost {

enum class MemoryItem { parameters, gradients, optimizer, activations, workspace, buffers, reserved };
inline constexpr int kMemoryItems = 7;
const char *nameOf(MemoryItem item);

using MemoryArray = std::array<double, kMemoryItems>;

/// In the order of a step. The first stage holds most activations, the last one logits.
enum class Moment { between, warm, logits, update };
inline constexpr int kMoments = 4;
const char *nameOf(Moment moment);

struct MemoryUse {
  std::array<MemoryArray, kMoments> bytes = {};
  std::array<double, kMoments> totals = {};
  Moment peak = Moment::between;
  double peakBytes = 0;
  const MemoryArray &atPeak() const { return bytes[size_t(peak)]; }
};
MemoryUse memoryUse(const CostProblem &problem, const Layout &layout);

/// What waits of a rank in its host's memory.
double offloadedBytes(const CostProblem &problem, const Layout &layout);

/// Tokens whose logits are there at a time.
inline constexpr double kLogitRows = 8192;

/// CUDA's context, NCCL's channels and what an allocator leaves unused.
inline constexpr double kReservedBytes = 3.0 * (1 << 30);

} // namespace heddle::cost
