#include "compiler/Cost/Memory.h"
#include "compiler/Cost/Activations.h"

#include <algorithm>
#include <numeric>

namespace heddle::cost {
namespace {

constexpr double kElement = 2;

double &of(MemoryArray &bytes, MemoryItem item) { return bytes[size_t(item)]; }

class Books {
public:
  Books(const CostProblem &problem, const Layout &layout)
      : problem(problem), layout(layout), parameters(rankParameters(problem, layout)),
        rows(double(layout.microBatch) * double(problem.context) / double(layout.context)) {}

  double offloaded() const {
    return microBatchesHeld() * layersOfStage(problem.model, layout) * rows * activationBytes(problem, layout);
  }

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

  /// The part of a state that is divided from ZeRO stage `stage` on.
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
    const double whole = layout.recompute >= Recompute::products ? rows * wholeLayerBytes() : 0;
    const double held = layout.offloadsActivations ? 2 * ofLayer : microBatchesHeld() * ofMicroBatch;
    of(at(Moment::warm), MemoryItem::activations) = held + whole;
    of(at(Moment::warm), MemoryItem::workspace) = workspace();
    const double logits =
        std::min(rows, kLogitRows) * double(problem.model.vocabulary) / double(layout.tensor) * (kElement + 4);
    const double last = layout.offloadsActivations ? 2 * ofLayer : layout.pipeline == 1 ? held : ofMicroBatch;
    of(at(Moment::logits), MemoryItem::activations) = last + logits;
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

double offloadedBytes(const CostProblem &problem, const Layout &layout) {
  return layout.offloadsActivations ? Books(problem, layout).offloaded() : 0;
}

MemoryUse memoryUse(const CostProblem &problem, const Layout &layout) { return Books(problem, layout).use(); }

} // namespace heddle::cost
