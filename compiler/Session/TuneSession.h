// Owns what the tuner needs of attention: the search space of a skeleton, compilation of a point, its verification
// against the definition and its timing on the GPU; and the publication of the winner.
#pragma once

#include "compiler/Session/CompileSession.h"
#include "compiler/Measure/KernelMeasurer.h"
#include "compiler/Session/TuneSpace.h"
#include "runtime/Store/Store.h"
#include "tuner/Model/CostModel.h"
#include "tuner/Search/TuningSession.h"

namespace heddle {

/// Everything, what the cost model holds for fastest first.
inline constexpr const char *kTuneStrategy = "exhaustive";

/// What is tuned and how.
struct TuneRequest : MeasureSetup {
  /// heddle, whose processes measure (MeasureProcess.h). Empty: this process does, and a kernel that breaks it is the
  /// end of the session.
  std::string measureProgram;
  std::string strategy = kTuneStrategy;
  std::string skeleton;               ///< whose configurations are searched; empty: the first that serves the request
  std::vector<const Store *> shipped; ///< beside the store that is written: their winners are tried as well
  std::string name;                   ///< the pattern's name in the store; empty: the pattern's own
  tuner::TuningOptions options;
};

struct TuneOutcome {
  tuner::TuningResult search;
  WinnerKey key;
  std::optional<KernelRecord> record; ///< of the winner; published
  double medianUs = 0;
  double maxError = 0;
  std::string order;     ///< what the points were ordered by, in words
  size_t warmStarts = 0; ///< points that were tried first: the default and winners nearby
};

/// Files the outcome's record as the tuned winner of its key, and the pattern under the name of the request, or its
/// own.
Status publishTuned(Store &store, const TuneOutcome &outcome, int64_t driverVersion, const PreparedPattern &prepared,
                    const TuneRequest &request);

/// What is searched for the request on GPUs of one architecture.
Result<std::shared_ptr<const TuneSpace>> tuneSpaceOf(const PatternFile &file, const TuneRequest &request,
                                                     const GpuArch &arch);

/// Tunes on `device` and publishes the winner and every trial to `store` (open for writing). A session without a
/// usable point is not a failure: `record` is empty. unavailable, where this process measures: a launch did not end;
/// its trial and all before it are recorded, the device is abandoned, and a session of another process goes on without
/// that point. Failures are those of the environment and of bad requests.
Result<TuneOutcome> tune(const PatternFile &file, const TuneRequest &request, const Device &device, Store &store);

} // namespace heddle
