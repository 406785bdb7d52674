//===- CostTraining.h - recorded tables that a cost model learns from -*- C++ -*-===//
// Owns the features of every row of the tables, the fit to all of them or to all but one, and the judgement of an order
// of candidates on one of them.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/TunePrior.h"
#include "tests/recorded/Fit.h"
#include "tests/recorded/RankReport.h"

#include <optional>

namespace heddle {

class CostTraining {
public:
  /// The problem that the table was recorded on. invalidArgument: a row that is no point
  /// of `space`, kernels of another family than those before. Other failures are those of ScheduleCost.
  Status add(tuner::RecordedTable table, std::shared_ptr<const TuneSpace> space, const ProblemShape &shape,
             const GpuModel &gpu);

  /// The skeleton whose kernels the tables are of; empty before the first.
  const std::string &familyName() const { return family; }
  size_t size() const { return workloads.size(); }
  const tuner::RecordedTable &table(size_t index) const { return workloads[index].table; }

  /// On the rows with a time of all tables, but for table `without`.
  Result<tuner::CostFit> fit(std::optional<size_t> without) const;
  /// Of one table's row, in microseconds.
  double estimate(size_t index, const tuner::CostModel &model, const tuner::Point &point) const;
  tuner::RankReport rank(size_t index, const tuner::CostModel &model) const;
  /// Of the order that knows no model: fewest changes from the default first.
  tuner::RankReport rankOfChanges(size_t index) const;

private:
  struct Workload {
    tuner::RecordedTable table;
    std::map<tuner::Point, tuner::CostFeatures> features; ///< of every row
    std::map<tuner::Point, double> changes;
  };
  std::vector<Workload> workloads;
  std::string family; ///< of their kernels
};

} // namespace heddle
