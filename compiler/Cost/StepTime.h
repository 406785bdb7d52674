// Owns the arithmetic of time. A step is microBatches() micro-batches through the busiest stage of the pipeline, the
// stages' waiting for the first and the last one, and what gradients and the optimiser add that nothing hides.
//   a layer    products at the rate of their shape, attention from kept pairs over the kernels' rate, sweeps over
//              memory, and collectives of the tensor, context and expert groups, as far as they are not hidden
//   backward   twice the products, attention at its own rate, twice the sweeps, the same collectives; where gradients are
//              added up apart from the products, a sweep over them
//   recompute  forward again: full, with its collectives; products, without attention and its keys; sweeps, norms, activation functions and what is projected from
//              latents; selective, the scores alone where they were materialised
//   bubble     of p stages with v parts each: (p - 1) / v of a micro-batch; zero-bubble (p - 1)(F + B - 2 W), dualpipe
//              (p / 2 - 1)(F + B - 3 W + B), W the half of backward that gives gradients of weights
//   hidden     a collective of the tensor group leaves one of t chunks before the product it hides behind; keys of a ring
//              what is longer than the attention of a step; gradients what is longer than the last backward, or from ZeRO 2 on
//              than that of each micro-batch; gathered weights of ZeRO 3 what is longer than each forward and backward
#pragma once

#include "compiler/Cost/Problem.h"

#include <array>

namespace heddle::cost {

enum class TimeItem {
  products,
  attention,
  sweeps,
  recompute,
  tensor,
  context,
  expert,
  pipeline,
  bubble,
  data,
  optimizer,
  offload
};
inline constexpr int kTimeItems = 12;
const char *nameOf(TimeItem item);

using TimeArray = std::array<double, kTimeItems>;

/// Seconds of one micro-batch through one layer, or through the head.
struct LayerTime {
  TimeArray forward = {}, backward = {}; ///< recompute is in backward
  double weightGradient = 0;             ///< of backward's products
};

/// Follows from what of a layout says what a layer does: tensor, context, expert, micro-batch, recompute, scheme, sequence.
struct StageTimes {
  LayerTime layer; ///< the mean of the model's layers
  LayerTime head;
};
StageTimes stageTimes(const CostProblem &problem, const Layout &layout);

struct StepTime {
  TimeArray seconds = {};
  double total = 0;
  double forwardMs = 0, backwardMs = 0; ///< of a micro-batch through the busiest stage
};
/// The layout is feasible but for memory; `stage` is stageTimes of it.
StepTime stepTime(const CostProblem &problem, const Layout &layout, const StageTimes &stage);

/// What each kind of communication takes beyond what `step` shows of it: it is hidden behind coverOf() it.
TimeArray hiddenTime(const CostProblem &problem, const Layout &layout, const StepTime &step);
const char *coverOf(TimeItem item);

int64_t microBatches(const CostProblem &problem, const Layout &layout);
/// The layers of the busiest stage. The words' matrices count as layers where only that makes stages even.
double layersOfStage(const ModelSpec &model, const Layout &layout);
/// Parameters of a rank of the busiest stage: of those that all replicas have, and of its experts.
struct RankParameters {
  double common = 0, experts = 0;
  double all() const { return common + experts; }
};
RankParameters rankParameters(const CostProblem &problem, const Layout &layout);

} // namespace heddle::cost
