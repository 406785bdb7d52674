#include "compiler/Views/CostRates.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Views/KeptPairs.h"

#include <cmath>
#include <sstream>

namespace heddle::views {
namespace {

/// Pairs that are tried one by one for the rate of one winner.
constexpr int64_t kMostTried = int64_t(1) << 26;

bool isAsked(const Winner &winner, const std::string &digest, const TunedQuestion &question) {
  const bool is16Bit = winner.dtype == DType::bf16 || winner.dtype == DType::fp16;
  return winner.isTuned && winner.medianUs > 0 && winner.pattern == digest && is16Bit &&
         winner.kind == (question.isBackward ? "backward" : "forward") && winner.headDim == question.headDim &&
         winner.valueDim == question.valueDim && isOnGpu(winner.deviceName, question.gpu);
}

/// None: its masks read tensors, of which only a digest is stored.
std::optional<ProblemShape> shapeOf(const Winner &winner) {
  if (winner.arguments.find(':') != std::string::npos)
    return std::nullopt;
  ProblemShape shape;
  shape.batch = winner.batch;
  shape.heads = winner.heads;
  shape.kvHeads = winner.kvHeads;
  shape.seqlenQ = winner.seqlenQ;
  shape.seqlenK = winner.seqlenK;
  shape.qOrigin = winner.qOrigin;
  shape.kOrigin = winner.kOrigin;
  std::istringstream values(winner.arguments);
  for (int64_t value; values >> value;)
    shape.parameters.push_back(value);
  return shape;
}

/// Of one batch element.
std::optional<double> pairsOf(const PatternFile &file, const ProblemShape &shape) {
  if (!checkShape(file, shape).isOk() || shape.seqlenQ == 0)
    return std::nullopt;
  const Result<KeptPairs> kept = keptPairsOf(file, sizesOf(file, shape), {}, {kMostTried, {}});
  if (!kept || !kept->count || *kept->count == 0)
    return std::nullopt;
  return static_cast<double>(*kept->count);
}

} // namespace

bool isOnGpu(const std::string &deviceName, const std::string &gpu) {
  const Result<const GpuModel *> model = findGpuModel(deviceName);
  return model && std::string((*model)->name) == gpu;
}

std::optional<TunedRate> tunedRate(const TunedWinners &tuned, const TunedQuestion &question) {
  const Result<std::string> digest = question.file.digest();
  if (!digest)
    return std::nullopt;
  std::optional<TunedRate> best;
  double nearest = 0;
  for (const Winner &winner : tuned.winners) {
    const std::optional<ProblemShape> shape =
        isAsked(winner, *digest, question) ? shapeOf(winner) : std::optional<ProblemShape>();
    const std::optional<double> pairs = shape ? pairsOf(question.file, *shape) : std::optional<double>();
    if (!pairs)
      continue;
    const double keys = *pairs / (double(shape->heads) * double(shape->seqlenQ)),
                 distance = std::fabs(std::log(keys / question.keysOfRow));
    if (best && distance >= nearest)
      continue;
    nearest = distance;
    const double flops = 2.0 * double(winner.headDim + winner.valueDim) * *pairs * double(winner.batch);
    attn::PatternOp pattern = question.file.pattern();
    best = {flops * (question.isBackward ? 2.5 : 1) / winner.medianUs * 1e-6,
            pattern.getSymName().str() + " " + winner.ExactProblem::str() + " on " + winner.deviceName};
  }
  return best;
}

} // namespace heddle::views
