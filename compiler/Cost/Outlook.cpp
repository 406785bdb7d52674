#include "compiler/Cost/Outlook.h"

#include <algorithm>
#include <cmath>

namespace heddle::cost {
namespace {

/// Daly (2006), equation 37, of d < 2 M; beyond that M.
double dalyInterval(double checkpoint, double between) {
  if (checkpoint >= 2 * between)
    return between;
  const double ratio = std::sqrt(checkpoint / (2 * between));
  return std::sqrt(2 * checkpoint * between) * (1 + ratio / 3 + ratio * ratio / 9) - checkpoint;
}

/// Whether parameters and states of every rank are those of another one of its ring, too.
bool goesOn(const CostProblem &problem, const Layout &layout) {
  return problem.failures.ringMinutes && layout.context > 1 && layout.zero == 0 && layout.expert == 1;
}

/// Of one failure.
double secondsLost(const CostProblem &problem, const Layout &layout, const StepTime &step, double interval) {
  const Failures &failures = problem.failures;
  return goesOn(problem, layout)
             ? *failures.ringMinutes * 60 + step.total + failures.restartMinutes * 60 / double(layout.context - 1)
             : interval / 2 + failures.restartMinutes * 60;
}

Goodput goodputOf(const CostProblem &problem, const Layout &layout, const StepTime &step) {
  const Cluster &cluster = problem.cluster;
  const double hosts = std::ceil(double(cluster.gpus) / double(cluster.perHost));
  const double bytes = problem.counts.total * (problem.precision.parameterBytes + problem.precision.optimizerBytes);
  Goodput goodput;
  goodput.failureHours = problem.failures.gpuHours / double(cluster.gpus);
  goodput.checkpointSeconds = bytes / (hosts * problem.failures.checkpointGBps * 1e9);
  const double between = goodput.failureHours * 3600;
  goodput.intervalSeconds = std::max(1.0, dalyInterval(goodput.checkpointSeconds, between));
  const double lost = goodput.checkpointSeconds / goodput.intervalSeconds +
                      secondsLost(problem, layout, step, goodput.intervalSeconds) / between;
  goodput.hasRings = goesOn(problem, layout);
  goodput.share = std::max(0.0, 1 - lost);
  return goodput;
}

double wattsOf(const Cluster &cluster) {
  const double hosts = std::ceil(double(cluster.gpus) / double(cluster.perHost));
  return (double(cluster.gpus) * cluster.gpu.watts + hosts * cluster.otherWatts) * cluster.overhead;
}

} // namespace

double flopsOfToken(const CostProblem &problem) {
  double scores = 0;
  for (const AttentionSpec &spec : problem.attention)
    scores += double(spec.layers) * spec.pairs;
  return 6 * problem.counts.active +
         6 * double(problem.model.headDim + problem.model.valueDim) * scores / double(problem.context);
}

Outlook outlook(const CostProblem &problem, const Layout &layout, const StepTime &step) {
  Outlook result;
  const Cluster &cluster = problem.cluster;
  const double tokens = double(problem.sequences()) * double(problem.context), gpus = double(cluster.gpus);
  result.tokensPerSecond = tokens / step.total;
  result.flopsOfToken = flopsOfToken(problem);
  result.mfu = result.tokensPerSecond * result.flopsOfToken / (gpus * cluster.gpu.tflops * 1e12);
  result.megawatts = wattsOf(cluster) / 1e6;
  if (problem.failures.gpuHours > 0)
    result.goodput = goodputOf(problem, layout, step);
  const double share = result.goodput ? result.goodput->share : 1;
  if (problem.trainTokens == 0 || share == 0)
    return result;
  const double hours = problem.trainTokens / result.tokensPerSecond / share / 3600;
  result.days = hours / 24;
  result.gpuHours = hours * gpus;
  if (cluster.gpu.watts > 0)
    result.megawattHours = hours * result.megawatts;
  if (problem.money.gpuHour > 0 || problem.money.kilowattHour > 0)
    result.money = hours * (gpus * problem.money.gpuHour + result.megawatts * 1e3 * problem.money.kilowattHour);
  return result;
}

} // namespace heddle::cost
