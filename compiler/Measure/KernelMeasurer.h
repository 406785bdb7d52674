// Owns one call on a GPU as the candidates of a search see it: each is loaded, its result is compared with the
// definition, its launches are timed. In this process, or in one of its own (MeasureProcess.h).
#pragma once

#include "compiler/Io/ServedKeys.h"
#include "compiler/Pattern/ProblemKey.h"
#include "runtime/Device/Device.h"
#include "tuner/Measure/Evaluator.h"

namespace heddle {

/// The call that candidates are measured on. The inputs are drawn from the seed.
struct MeasureSetup : CallShape {
  KernelRecord forward = {}; ///< launched once for what calls of the kind read of a forward call; empty: nothing
  ProblemShape shape;
  ServedKeys served = {}; ///< of sequences, for kinds that have them; shape.seqlenK is their room()
  float scale = 0;        ///< 0: 1 / sqrt(headDim)
  uint64_t seed = 1;
  int64_t verifiedRows = 32;
  double launchLimitSeconds = 30; ///< a launch that takes longer is taken for one that never ends
  double answerLimitSeconds = 60; ///< beside its launches, what a process of its own may take for an answer
};

/// Used by one thread. The caller numbers the candidates; each is loaded when it is first needed and stays until
/// released.
class KernelMeasurer {
public:
  virtual ~KernelMeasurer() = default;
  /// Waits until candidates can be measured. Failures are those of the environment: no GPU, not enough memory.
  virtual Status ready() = 0;
  /// Launches it once and compares; wrong, launchFailed or timedOut. Measurer is ready.
  virtual tuner::Verification verify(int64_t candidate, const KernelRecord &record) = 0;
  /// One launch with a flushed L2 cache, in microseconds.
  virtual tuner::Sample sample(int64_t candidate, const KernelRecord &record) = 0;
  /// Waits for nobody: candidates are let go of from destructors.
  virtual void release(int64_t candidate) = 0;
  /// internal: a candidate wrote into what all of them only read.
  virtual Status checkInputs() = 0;
  /// Fresh inputs; candidates are loaded again when they are needed.
  virtual Status renew() = 0;
  /// After launchFailed and timedOut: other candidates can be measured again, or why not.
  virtual Status recover() = 0;
};

/// In this process: a kernel that never ends, or breaks the context, is the end of the measurer. `file` outlives it.
std::unique_ptr<KernelMeasurer> measureHere(const Device &device, const PatternFile &file, const MeasureSetup &setup);

} // namespace heddle
