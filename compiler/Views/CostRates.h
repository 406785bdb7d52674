// Owns how fast kernels that were tuned on a GPU are on a pattern: of its winners there the one whose rows keep most nearly
// as many keys, by its stored time and the pairs that its own problem keeps.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "runtime/Core/KernelRecord.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle::views {

/// Of one database.
struct TunedWinners {
  std::string database; ///< its path
  std::vector<Winner> winners;
};

struct TunedRate {
  double tflops = 0;   ///< on kept pairs, as cost::AttentionRate counts backward
  std::string problem; ///< "causal 1x16x32768 on NVIDIA H200"
};

struct TunedQuestion {
  const PatternFile &file;
  bool isBackward = false;
  int64_t headDim = 0, valueDim = 0;
  double keysOfRow = 0; ///< kept, on average
  std::string gpu;      ///< GpuModel::name
};

/// Whether a driver's name of a GPU is that of a model (GpuModel::name).
bool isOnGpu(const std::string &deviceName, const std::string &gpu);

/// None: no tuned winner of 16-bit elements is of the pattern, the head dims and the GPU, or none whose pairs can be counted.
std::optional<TunedRate> tunedRate(const TunedWinners &tuned, const TunedQuestion &question);

} // namespace heddle::views
