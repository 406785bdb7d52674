// Owns every constant of the planner that was measured by somebody. Each has its source beside it in Rates.cpp, and all
// predictions use the same ones: a run that is predicted badly is no reason for a constant of its own.
#pragma once

#include "runtime/Core/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle::cost {

struct Efficiency {
  double products;    ///< of the dense 16-bit rate, by products of thousands of rows and columns
  double fp8Products; ///< of the dense 8-bit rate
  double memory;      ///< of the bandwidth of device memory, by sweeps over it
  double insideLink;  ///< of a link's rate each way, by collectives in a host
  double betweenLink; ///< likewise between hosts
};
const Efficiency &efficiency();

struct EfficiencySource {
  std::string_view name, source;
  double value;
};
/// The rows of efficiency(), for people.
const std::vector<EfficiencySource> &efficiencySources();

/// How the scores of attention are computed.
enum class AttentionKernel {
  heddle, ///< this project's kernels
  flash3,
  flash2,
  cudnn,
  materialised, ///< scores are written to memory, masked ones too
};
const std::vector<std::string> &attentionKernelNames();
Result<AttentionKernel> parseAttentionKernel(const std::string &name);

/// TFLOP/s on kept pairs, and where that is from.
struct AttentionRate {
  double forward = 0, backward = 0;
  bool isGuess = false;
  std::string note;
  std::string advice = {}; ///< what would measure a guess; or nothing
};

struct RateQuestion {
  AttentionKernel kernel;
  std::string pattern; ///< its name
  int64_t headDim;
  double keysOfRow;   ///< kept, on average
  std::string gpu;    ///< GpuModel::name
  double sheetTflops; ///< dense 16-bit
};
/// Measured where there is such a row; else a share of the sheet, marked as a guess that names what to tune.
AttentionRate attentionRate(const RateQuestion &question);

} // namespace heddle::cost
