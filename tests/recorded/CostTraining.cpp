//===- CostTraining.cpp - recorded tables that a cost model learns from ---===//
#include "tests/recorded/CostTraining.h"
#include "codegen/Config/KernelConfig.h"

namespace heddle {

Status CostTraining::add(tuner::RecordedTable table, std::shared_ptr<const TuneSpace> space, const ProblemShape &shape,
                         const GpuModel &gpu) {
  HEDDLE_TRY(costModelStart(space->familyName()).status());
  if (!workloads.empty() && space->familyName() != family)
    return Status::invalidArgument(table.space().name() + ": kernels of " + space->familyName() +
                                   ", those of the tables before are of " + family + "; fit each family by itself");
  HEDDLE_ASSIGN(std::shared_ptr<ScheduleCost> cost,
                ScheduleCost::create(space->pattern(), shape, space->request(), gpu));
  Workload workload{std::move(table), {}, {}};
  if (!workload.table.best())
    return Status::invalidArgument(workload.table.space().name() + ": nothing was measured");
  for (const tuner::PointTrial &trial : workload.table.trials()) {
    Result<tuner::Point> point = space->space().parse(trial.config);
    if (!point)
      return Status::invalidArgument(workload.table.space().name() + ": " + point.status().message());
    const double changes = space->distanceFromDefault(*point);
    cost->describe(space->configAt(*point), size_t(changes), workload.features[trial.point]);
    workload.changes[trial.point] = changes;
  }
  workloads.push_back(std::move(workload));
  family = space->familyName();
  return {};
}

Result<tuner::CostFit> CostTraining::fit(std::optional<size_t> without) const {
  std::vector<tuner::CostSample> samples;
  for (size_t i = 0; i < workloads.size(); ++i)
    for (const tuner::PointTrial &trial : workloads[i].table.trials())
      if (i != without && !tuner::isFailure(trial.outcome) && trial.medianUs > 0)
        samples.push_back({workloads[i].features.at(trial.point), trial.medianUs});
  HEDDLE_ASSIGN(const tuner::CostModel *start, costModelStart(family));
  return tuner::fitCostModel(*start, samples);
}

double CostTraining::estimate(size_t index, const tuner::CostModel &model, const tuner::Point &point) const {
  return model.estimate(workloads[index].features.at(point));
}

tuner::RankReport CostTraining::rank(size_t index, const tuner::CostModel &model) const {
  return tuner::rankReport(table(index), [&](const tuner::Point &point) { return estimate(index, model, point); });
}

tuner::RankReport CostTraining::rankOfChanges(size_t index) const {
  return tuner::rankReport(table(index), [&](const tuner::Point &point) { return workloads[index].changes.at(point); });
}

} // namespace heddle
