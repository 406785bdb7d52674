#include "compiler/Cost/StepTime.h"
#include "compiler/Cost/Activations.h"

#include <algorithm>
#include <numeric>

namespace heddle::cost {
namespace {

double sumOf(const TimeArray &times) { return std::accumulate(times.begin(), times.end(), 0.0); }

/// Whether stages are even only if the matrices of words in and out count as a layer each.
bool countsWords(const ModelSpec &model, const Layout &layout) {
  const int64_t parts = layout.pipeline * layout.virtualStages;
  return layout.pipeline > 1 && model.layers % parts != 0 && (model.layers + 2) % parts == 0;
}

class StepClock {
public:
  StepClock(const CostProblem &problem, const Layout &layout, const StageTimes &stage)
      : problem(problem), layout(layout), links(problem.cluster), batches(double(microBatches(problem, layout))) {
    const double layers = layersOfStage(problem.model, layout);
    const double heads = countsWords(problem.model, layout) ? 0 : 1; // else the last stage has it beside all its layers
    for (size_t item = 0; item < kTimeItems; ++item) {
      forward[item] = layers * stage.layer.forward[item] + heads * stage.head.forward[item];
      backward[item] = layers * stage.layer.backward[item] + heads * stage.head.backward[item];
    }
    weightGradient = layers * stage.layer.weightGradient + heads * stage.head.weightGradient;
    addAccumulation();
  }

  StepTime step() {
    for (size_t item = 0; item < kTimeItems; ++item)
      time.seconds[item] = batches * (forward[item] + backward[item]);
    addPipeline();
    addGradients();
    addOptimizer();
    addActivations();
    time.total = sumOf(time.seconds);
    time.forwardMs = sumOf(forward) * 1e3;
    time.backwardMs = sumOf(backward) * 1e3;
    return time;
  }

private:
  double &at(TimeItem item) { return time.seconds[size_t(item)]; }

  double sweep(double bytes) const { return bytes / (problem.cluster.gpu.bandwidthGBps * 1e9 * efficiency().memory); }

  /// The gradient of a micro-batch is read, the sum read and written. From ZeRO 2 on a rank adds up its share alone.
  void addAccumulation() {
    if (problem.precision.addsGradientsApart && batches > 1 && layout.zero < 2)
      backward[size_t(TimeItem::sweeps)] +=
          sweep(rankParameters(problem, layout).all() * (2 + 2 * problem.precision.gradientBytes));
  }

  void addPipeline() {
    if (layout.pipeline == 1)
      return;
    const double rows =
        double(layout.microBatch) * double(problem.context) / double(layout.context) / double(layout.tensor);
    const Group stages = {layout.pipeline, layout.tensor * layout.replicas()};
    const double transfer = links.send(stages, rows * double(problem.model.width) * 2);
    const double parts = double(layout.virtualStages);
    const bool isHidden =
        problem.overlap.pipeline && (layout.virtualStages > 1 || layout.schedule == Schedule::dualPipe);
    if (!isHidden)
      at(TimeItem::pipeline) = batches * parts * 2 * transfer;
    at(TimeItem::bubble) = bubble() + (double(layout.pipeline) - 1) * 2 * transfer;
  }

  double bubble() const {
    const double there = sumOf(forward), back = sumOf(backward), stages = double(layout.pipeline);
    switch (layout.schedule) {
    case Schedule::zeroBubble:
      return (stages - 1) * std::max(0.0, there + back - 2 * weightGradient);
    case Schedule::dualPipe:
      return (stages / 2 - 1) * std::max(0.0, there + 2 * back - 3 * weightGradient);
    default:
      return (stages - 1) / double(layout.virtualStages) * (there + back);
    }
  }

  void addGradients() {
    const RankParameters parameters = rankParameters(problem, layout);
    const int64_t experts = std::max<int64_t>(1, layout.replicas() / layout.expert);
    const Group all = {layout.replicas(), layout.tensor}, alike = {experts, layout.tensor * layout.expert};
    const double scattered = gradients(all, parameters.common) + gradients(alike, parameters.experts);
    const double gathered = weights(all, parameters.common) + weights(alike, parameters.experts);
    const double there = hidden(gathered, sumOf(forward)), back = hidden(scattered, sumOf(backward));
    if (layout.zero == 3) // weights are gathered again for backward
      at(TimeItem::data) = batches * (there + hidden(gathered + scattered, sumOf(backward)));
    else // gradients that are divided do not wait for the last micro-batch
      at(TimeItem::data) = there + back * (layout.zero == 2 ? batches : 1);
  }

  double hidden(double seconds, double behind) const {
    return problem.overlap.data ? std::max(0.0, seconds - behind) : seconds;
  }

  double gradients(const Group &group, double parameters) const {
    const double bytes = parameters * problem.precision.gradientBytes;
    return layout.zero > 0 ? links.scatter(group, bytes) : links.reduce(group, bytes);
  }

  double weights(const Group &group, double parameters) const {
    return layout.zero > 0 ? links.gather(group, parameters * problem.precision.parameterBytes) : 0;
  }

  void addOptimizer() {
    const RankParameters parameters = rankParameters(problem, layout);
    const int64_t experts = std::max<int64_t>(1, layout.replicas() / layout.expert);
    const double own = layout.zero > 0
                           ? parameters.common / double(layout.replicas()) + parameters.experts / double(experts)
                           : parameters.all();
    const Precision &precision = problem.precision;
    // Gradients are read for their norm and again, states read and written, parameters written.
    const double bytes = own * (2 * precision.gradientBytes + 2 * precision.optimizerBytes + precision.parameterBytes);
    at(TimeItem::optimizer) = sweep(bytes);
    if (layout.offloadsOptimizer)
      at(TimeItem::offload) += own * 2 * precision.optimizerBytes / (problem.cluster.hostLinkGBps * 1e9);
  }

  /// Out behind a forward pass and back before the backward one, beside those of other layers.
  void addActivations() {
    if (!layout.offloadsActivations)
      return;
    const double rows = double(layout.microBatch) * double(problem.context) / double(layout.context);
    const double moved = rows * activationBytes(problem, layout) * layersOfStage(problem.model, layout) /
                         (problem.cluster.hostLinkGBps * 1e9);
    at(TimeItem::offload) += batches * (std::max(0.0, moved - sumOf(forward)) + std::max(0.0, moved - sumOf(backward)));
  }

  const CostProblem &problem;
  const Layout &layout;
  Links links;
  double batches, weightGradient = 0;
  TimeArray forward = {}, backward = {};
  StepTime time;
};

} // namespace

const char *nameOf(TimeItem item) {
  static const char *const names[kTimeItems] = {"products", "attention", "sweeps", "recompute", "tensor",    "context",
                                                "expert",   "pipeline",  "bubble", "data",      "optimizer", "offload"};
  return names[int(item)];
}

TimeArray hiddenTime(const CostProblem &problem, const Layout &layout, const StepTime &step) {
  CostProblem shown = problem;
  shown.overlap = {false, false, false, false, problem.overlap.units};
  Layout alone = layout; // one micro-batch at a time
  if (alone.schedule == Schedule::dualPipe)
    alone.schedule = Schedule::oneForwardOneBackward;
  const TimeArray all = stepTime(shown, alone, stageTimes(shown, alone)).seconds;
  TimeArray hidden = {};
  for (const TimeItem item :
       {TimeItem::tensor, TimeItem::context, TimeItem::expert, TimeItem::pipeline, TimeItem::data})
    hidden[size_t(item)] = std::max(0.0, all[size_t(item)] - step.seconds[size_t(item)]);
  return hidden;
}

const char *coverOf(TimeItem item) {
  switch (item) {
  case TimeItem::tensor:
    return "products";
  case TimeItem::context:
    return "attention";
  case TimeItem::expert:
    return "another micro-batch";
  case TimeItem::pipeline:
    return "other stages of the same GPU";
  default:
    return "forward and backward";
  }
}

int64_t microBatches(const CostProblem &problem, const Layout &layout) {
  return problem.sequences() / (layout.data * layout.microBatch);
}

double layersOfStage(const ModelSpec &model, const Layout &layout) {
  const int64_t parts = layout.pipeline * layout.virtualStages;
  const int64_t layers = countsWords(model, layout) ? model.layers + 2 : model.layers;
  return double((layers + parts - 1) / parts) * double(layout.virtualStages);
}

RankParameters rankParameters(const CostProblem &problem, const Layout &layout) {
  const ModelSpec &model = problem.model;
  const ParameterCounts &counts = problem.counts;
  const double layers = layersOfStage(model, layout), tensor = double(layout.tensor),
               expertShare = double(model.expertLayers()) / double(model.layers);
  RankParameters parameters;
  parameters.common =
      layers * (counts.attention + (1 - expertShare) * counts.denseFfn + expertShare * counts.sharedFfn);
  const double words = layout.pipeline == 1 && !model.isTied ? 2 : countsWords(model, layout) ? 0 : 1;
  parameters.common = (parameters.common + words * counts.embedding) / tensor;
  parameters.experts = layers * expertShare * counts.experts / tensor / double(layout.expert);
  return parameters;
}

StepTime stepTime(const CostProblem &problem, const Layout &layout, const StageTimes &stage) {
  return StepClock(problem, layout, stage).step();
}

} // namespace heddle::cost
