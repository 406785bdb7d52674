//===- Memory.cpp - what a GPU holds --------------------------------------===//
#include "compiler/Cost/Memory.h"

#include <algorithm>
#include <numeric>

namespace heddle::cost {
namespace {

constexpr double kElement = 2;

double &of(MemoryArray &bytes, MemoryItem item) { return bytes[size_t(item)]; }

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

class Books {
public:
  Books(const CostProblem &problem, const Layout &layout)
      : problem(problem), layout(layout), parameters(rankParameters(problem, layout)),
        rows(double(layout.microBatch) * double(problem.context) / double(layout.context)) {}

  MemoryUse use() {
    addStates();
    addPassing();
    addUpdate();
    for (size_t moment = 0; moment < kMoments; ++moment) {
      MemoryArray &bytes = result.bytes[moment];
      of(bytes, MemoryItem::reserved) = kReservedBytes;
      result.totals[moment] = std::accumulate(bytes.begin(), bytes.end(), 0.0);
      if (result.totals[moment] > result.peakBytes) {
        result.peakBytes = result.totals[moment];
        result.peak = Moment(moment);
      }
    }
    return result;
  }

private:
  MemoryArray &at(Moment moment) { return result.bytes[size_t(moment)]; }

  /// Of a state that is divided from ZeRO stage `stage` on.
  double divided(int64_t stage) const {
    const double experts = std::max(1.0, double(layout.replicas()) / double(layout.expert));
    return layout.zero >= stage ? parameters.common / double(layout.replicas()) + parameters.experts / experts
                                : parameters.all();
  }

  void addStates() {
    const Precision &precision = problem.precision;
    for (MemoryArray &bytes : result.bytes) {
      of(bytes, MemoryItem::parameters) =
          divided(3) * precision.parameterBytes * (layout.schedule == Schedule::dualPipe ? 2 : 1);
      of(bytes, MemoryItem::gradients) = divided(2) * precision.gradientBytes;
      of(bytes, MemoryItem::optimizer) = layout.offloadsOptimizer ? 0 : divided(1) * precision.optimizerBytes;
      of(bytes, MemoryItem::buffers) = buffers();
    }
  }

  double buffers() const {
    const ModelSpec &model = problem.model;
    double bytes = layout.tensor > 1 ? 2 * rows * double(model.width) * kElement : 0;
    if (layout.context > 1) // k and v of two steps
      bytes += 4 * rows * double(model.kvHeads) * double(model.headDim + model.valueDim) * kElement /
               std::min(double(layout.tensor), double(model.kvHeads));
    if (layout.expert > 1)
      bytes += 2 * rows * double(model.activeExperts) * double(model.width) * kElement;
    if (layout.zero == 3) // two layers, whole
      bytes += 2 * (parameters.all() / layersOfStage(model, layout)) * problem.precision.parameterBytes;
    return bytes;
  }

  double microBatchesHeld() const {
    const double batches = double(microBatches(problem, layout)), stages = double(layout.pipeline);
    if (layout.schedule == Schedule::gpipe)
      return batches;
    if (layout.schedule == Schedule::dualPipe)
      return std::min(batches, stages + 1);
    const double parts = double(layout.virtualStages);
    return std::min(batches, parts > 1 ? stages * (1 + (stages - 1) / (stages * parts)) : stages);
  }

  void addPassing() {
    const double ofLayer = rows * activationBytes(problem, layout), layers = layersOfStage(problem.model, layout);
    const double ofMicroBatch = layers * ofLayer;
    const double whole = layout.recompute == Recompute::full ? rows * wholeLayerBytes() : 0;
    of(at(Moment::warm), MemoryItem::activations) = microBatchesHeld() * ofMicroBatch + whole;
    of(at(Moment::warm), MemoryItem::workspace) = workspace();
    const double logits = rows * double(problem.model.vocabulary) / double(layout.tensor) * (kElement + 4);
    const double held = layout.pipeline == 1 ? microBatchesHeld() : 1;
    of(at(Moment::logits), MemoryItem::activations) = held * ofMicroBatch + logits;
  }

  double wholeLayerBytes() const {
    Layout kept = layout;
    kept.recompute = Recompute::none;
    return activationBytes(problem, kept);
  }

  double workspace() const {
    double most = 0;
    for (const AttentionSpec &spec : problem.attention)
      most = std::max(most, spec.workspaceBytes);
    return most * double(layout.microBatch) / double(layout.tensor) / double(layout.context);
  }

  void addUpdate() {
    if (layout.offloadsOptimizer) // states pass through in pieces
      of(at(Moment::update), MemoryItem::buffers) += 1.0 * (1 << 30);
  }

  const CostProblem &problem;
  const Layout &layout;
  RankParameters parameters;
  double rows;
  MemoryUse result;
};

} // namespace

const char *nameOf(MemoryItem item) {
  static const char *const names[kMemoryItems] = {"parameters", "gradients", "optimizer", "activations",
                                                  "workspace",  "buffers",   "reserved"};
  return names[int(item)];
}

const char *nameOf(Moment moment) {
  static const char *const names[kMoments] = {"between steps", "first stage, pipeline full",
                                              "last stage, at its logits", "optimizer"};
  return names[int(moment)];
}

double activationBytes(const CostProblem &problem, const Layout &layout) {
  const double tensor = double(layout.tensor), outerParts = layout.splitsSequence ? tensor : 1;
  if (layout.recompute == Recompute::full)
    return double(problem.model.width) * kElement / outerParts;
  Kept kept = KeptBytes(problem, layout.recompute == Recompute::sweeps).kept(problem.attention, problem.context);
  if (layout.recompute == Recompute::selective)
    kept.scores = 0;
  return kept.outer / outerParts + (kept.inner + kept.scores) / tensor;
}

MemoryUse memoryUse(const CostProblem &problem, const Layout &layout) { return Books(problem, layout).use(); }

} // namespace heddle::cost
