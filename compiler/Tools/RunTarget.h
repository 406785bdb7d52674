// Owns the way from checked inputs to out and lse in host memory, on the CPU and on a GPU.
#pragma once

#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Tools/Options.h"

#include <optional>

namespace heddle::cli {

/// `shape` passed checkShape and agrees with `inputs`.
struct RunCall {
  const PatternFile &file;
  const AttentionInputs &inputs;
  ProblemShape shape;
  float scale;
  std::optional<DType> out = {};         ///< the type of out; nothing: that of the inputs
  std::string config = {};               ///< changes to the default: compiled now, whatever the database has
  std::optional<int64_t> splitKeys = {}; ///< two launches, the second over the keys from here on; CUDA only
  std::optional<int64_t> repeat = {};    ///< so many launches that must agree bit by bit; CUDA only

  DType outDType() const { return out.value_or(inputs.outDType()); }
};

/// Largest differences between two launches over a split of the keys and one launch.
struct SplitDifference {
  double out = 0, lse = 0;
};

/// What the call writes, and how it went.
struct RunResult : RoleTensors {
  std::vector<HostTensor> argumentGradients; ///< in the order of Kind::gradientsOf
  double ms = 0;                             ///< of the computation alone: no compilation, no copies
  std::string kernel;                        ///< what ran, in words
  std::optional<SplitDifference> split;
};

/// Shows elapsed time on stderr if that is a terminal and the call takes long.
Result<RunResult> runOnCpu(const RunCall &call);

/// Gives `inputs`, which are those of the call, what they lack of what comes from a forward call.
Status addFromForwardOnCpu(const RunCall &call, AttentionInputs &inputs);
/// By the best forward kernel of the database, or the default compiled now.
Status addFromForwardOnDevice(const RunCall &call, const DatabaseOptions &database, AttentionInputs &inputs);

/// GPU 0 with the best kernel of the database, or one compiled now with the default configuration; says on stderr
/// which. unavailable: no driver, no GPU, or nothing to compile with.
Result<RunResult> runOnDevice(const RunCall &call, const DatabaseOptions &database);

/// Zero-filled results of the right shape.
RunResult emptyResult(const RunCall &call);

} // namespace heddle::cli
