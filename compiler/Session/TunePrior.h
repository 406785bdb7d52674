// Owns the choice of the estimate that a search begins with: the cost model where it was fitted for the kernels that
// are searched and the analysis can count their work, else the number of changes from the default.
#pragma once

#include "runtime/Store/Store.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/ScheduleCost.h"
#include "compiler/Session/TuneSpace.h"

#include <functional>

namespace heddle {

struct DeviceIdentity;

struct TunePrior {
  /// microseconds, or in units of the default's time; finite, above 0
  std::function<double(const tuner::Point &)> cost;
  std::string basis; ///< where it comes from, in words
  bool isModel = false;
};

/// The data sheet's row of a GPU, with the number of SMs that it says itself. notFound: no row, and none for its
/// architecture.
Result<GpuModel> ratesOfDevice(const DeviceIdentity &device);

/// The prior of a model fitted for the kernels of `space`. Failures are those of ScheduleCost.
Result<TunePrior> modelPrior(std::shared_ptr<const TuneSpace> space, const ProblemShape &shape, const GpuModel &gpu,
                             const tuner::CostModel &model);
/// Each change from the default costs a little.
TunePrior distancePrior(std::shared_ptr<const TuneSpace> space);
/// modelPrior with the shipped parameters where they serve, else distancePrior, with the reason in its basis.
TunePrior shippedPrior(std::shared_ptr<const TuneSpace> space, const ProblemShape &shape, const Result<GpuModel> &gpu);

// Owns the points that a search tries first: the default, then winners of the same pattern, types and head dims at
// other sizes or on other GPUs, the nearest first; and the winner so far, which it has to beat.

/// At most so many winners are taken over.
inline constexpr size_t kMostWarmStarts = 8;

/// Texts of points, without repetition. Tuned winners only, of every generator: a configuration that is no point of the
/// space any more is left out. Failures are those of the stores.
Result<std::vector<std::string>> warmStarts(const std::vector<const Store *> &stores, const WinnerKey &key,
                                            const TuneSpace &space);

/// The point that the store's tuned winner of the very key is; empty if there is none, or it is none of the space.
Result<std::string> incumbentOf(const Store &store, const WinnerKey &key, const TuneSpace &space);

} // namespace heddle
