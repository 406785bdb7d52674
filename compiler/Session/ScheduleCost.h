// Owns what a cost model is told of a configuration: times of its tensor, exponential, memory and launch work on an
// ideal GPU of the data sheet's rates, by tile class, and the choices that lengthen them. The parameters are data, in
// CostParameters.cpp; tests/recorded makes them from recorded trials.
#pragma once

#include "tuner/Model/CostModel.h"

#include <memory>

namespace heddle {

struct GpuModel;
class KernelConfig;
struct KernelRequest;
struct PreparedPattern;
struct ProblemShape;

/// The model of a skeleton's kernels before any trial: names of all parameters and where a fit starts. Its family is
/// the skeleton's name. notFound: nobody has said what tells its configurations apart.
Result<const tuner::CostModel *> costModelStart(const std::string &skeleton);

/// The parameters of a skeleton's kernels; null if there are none.
const tuner::CostModel *shippedCosts(const std::string &skeleton);

/// The work of one call on one GPU. Counts what the analysis left, no IR: one thread at a time, but any.
class ScheduleCost {
public:
  /// Failures are those of WorkCounts.
  static Result<std::shared_ptr<ScheduleCost>> create(const PreparedPattern &pattern, const ProblemShape &shape,
                                                      const KernelRequest &request, const GpuModel &gpu);

  /// `changes`: choices that are not those of the default.
  void describe(const KernelConfig &config, size_t changes, tuner::CostFeatures &features);

  ScheduleCost(const ScheduleCost &) = delete;
  ~ScheduleCost();

private:
  struct Impl;
  explicit ScheduleCost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace heddle
