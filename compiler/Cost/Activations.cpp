#include "compiler/Cost/Activations.h"

namespace heddle::cost {
namespace {

constexpr double kElement = 2;

/// Bytes that backward reads of one token: outside the tensor group's part, inside it, and of scores.
struct Kept {
  double outer = 0, inner = 0, scores = 0;
};

class KeptBytes {
public:
  KeptBytes(const CostProblem &problem, bool isLight)
      : model(problem.model), isLight(isLight), input(problem.precision.isFp8 ? 1 : kElement),
        expertShare(double(model.expertLayers()) / double(model.layers)) {}

  Kept kept(const std::vector<AttentionSpec> &attention, int64_t tokens) {
    const double width = double(model.width), norms = model.hasParallelBlocks ? 1 : 2;
    sum.outer = width * norms * (kElement + (isLight ? 0 : input));         // of norms, and of the products behind them
    sum.outer += expertShare * width * double(model.activeExperts) * input; // sorted for experts
    addAttention();
    addFfn(double(model.ffn), 1 - expertShare);
    addFfn(double(model.expertFfn) * double(model.activeExperts + model.sharedExperts), expertShare);
    for (const AttentionSpec &spec : attention)
      if (spec.kernel == AttentionKernel::materialised)
        addScores(double(spec.layers) / double(model.layers), double(tokens));
    return sum;
  }

private:
  void addAttention() {
    const double out = double(model.heads) * double(model.valueDim),
                 others = double(model.heads) * double(model.headDim) +
                          double(model.kvHeads) * double(model.headDim + model.valueDim),
                 latents = double(model.latent.query + model.latent.keyValue + model.latent.rope);
    sum.inner += (out + (isLight && model.latent.isUsed() ? 0 : others) + latents) * kElement;
  }

  /// Before the activation function, of two products where it gates, and behind it.
  void addFfn(double channels, double share) {
    const double before = (model.isGated ? 2 : 1) * (isLight ? input : kElement), behind = isLight ? 0 : input;
    sum.inner += share * channels * (before + behind);
  }

  /// The softmax's output, and the same dropped out; masks of bytes here and behind attention and the ffn.
  void addScores(double share, double tokens) {
    sum.scores += share * double(model.heads) * tokens * (2 * kElement + 1);
    sum.outer += share * 2 * double(model.width);
  }

  const ModelSpec &model;
  bool isLight;
  double input, expertShare;
  Kept sum;
};

} // namespace

double activationBytes(const CostProblem &problem, const Layout &layout) {
  const double tensor = double(layout.tensor), outerParts = layout.splitsSequence ? tensor : 1;
  const double input = double(problem.model.width) * kElement / outerParts;
  if (layout.recompute == Recompute::full)
    return input;
  if (layout.recompute == Recompute::products) // attention's result, and 4 bytes for the lse of a row
    return input + double(problem.model.heads) * (double(problem.model.valueDim) * kElement + 4) / tensor;
  Kept kept = KeptBytes(problem, layout.recompute == Recompute::sweeps).kept(problem.attention, problem.context);
  if (layout.recompute == Recompute::selective)
    kept.scores = 0;
  return kept.outer / outerParts + (kept.inner + kept.scores) / tensor;
}

} // namespace heddle::cost
