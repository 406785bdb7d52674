// Owns the tensors of one call in device memory, the argument struct that describes them, and the comparison of what
// a kernel wrote with the definition. Shared by run, tune and bench.
#pragma once

#include "runtime/Device/Device.h"
#include "compiler/Measure/GuardedBuffer.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Oracle/KindOracle.h"
#include "runtime/Device/Kernel.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// What a tensor holds, as 64-bit digests (XXH3) of its pieces.
class Fingerprint {
public:
  Fingerprint(std::string name, const void *host, int64_t bytes);

  /// internal: device memory, which is as long, holds something else; names the tensor.
  Status check(const DeviceBuffer &copy) const;

private:
  std::string name;
  int64_t bytes;
  std::vector<uint64_t> pieces;
};

struct GpuArch;

/// The row of the architecture table for a GPU.
Result<const GpuArch *> archOf(const DeviceIdentity &device);
inline Result<const GpuArch *> archOf(const Device &device) { return archOf(device.info().identity); }

/// What is called; `outDType`: nothing means that of the inputs.
struct DeviceCall {
  const PatternFile &file;
  const ProblemShape &shape;
  const AttentionInputs &inputs;
  float scale;
  std::optional<DType> outDType = {};
};

/// The call as the definition takes it, to judge a GPU's result; refers to the call's inputs and pattern.
oracle::KindCall definitionOf(const DeviceCall &call);

/// What one launch of the kernel writes.
Result<RoleTensors> launchOnce(const Device &device, const DeviceCall &call, const KernelRecord &record);

/// Movable. Not thread safe. The GPU's default stream orders everything.
class DeviceProblem {
public:
  /// Copies what a call of the inputs' kind reads; what it writes is allocated and poisoned with NaN. unavailable: not
  /// enough device memory.
  static Result<DeviceProblem> create(const Device &device, const DeviceCall &call);

  /// Arguments with the workspace that `kernel` asks for, shared with every other call. Valid as long as this object.
  Result<AttentionArgs> argumentsFor(const Kernel &kernel);

  /// Fills with NaN what is written, or with what it was where calls add to it.
  Status poison();
  bool addsToResults() const { return !addedTo.empty(); }
  /// Waits for the GPU and compares what was written with the definition. internal: a kernel wrote beside the results
  /// or its workspace.
  Result<oracle::KindReport> compare(const oracle::KindReference &reference) const;
  /// Waits for the GPU. internal: a kernel wrote into a tensor that it may only read. Reads all of them back.
  Status checkInputs() const;
  /// Elements of results that are NaN: never written, or wrong.
  Result<int64_t> countNaN() const;
  /// Waits for the GPU and copies the results.
  Status download(RoleTensors &results) const;
  const std::vector<RoleSpec> &writtenRoles() const { return roles; }
  /// Waits for the GPU and copies the gradients of arguments, in the order of the call.
  Result<std::vector<HostTensor>> argumentGradients() const;
  /// Zero-filled results of the right types and shapes.
  RoleTensors emptyResults() const;

private:
  explicit DeviceProblem(const Device &device) : device(device) {}
  Status bindArguments(const PatternFile &file, const ProblemShape &shape);
  Status bindGradients(const DeviceCall &call);
  Status bindRoles(const AttentionInputs &tensors);
  Status giveAddedTo();
  Result<void *> copyInput(const std::string &name, const void *data, int64_t bytes);
  const GuardedBuffer &written(Role role) const;
  Status checkGuards() const;
  Result<std::vector<double>> readRow(const RoleSpec &role, const oracle::RowId &id) const;
  /// Reads the gradient of an argument, by its place among the call's.
  Status readGradient(size_t place, HostTensor &tensor) const;

  Device device;
  AttentionSizes sizes;
  Kind kind = {};
  CallElements elements = {};
  std::vector<RoleSpec> roles;                        ///< that are written
  std::vector<GuardedBuffer> results;                 ///< in their order
  std::vector<std::pair<size_t, HostTensor>> addedTo; ///< results that calls add to, and what they hold before
  std::vector<GuardedBuffer> workspaces; ///< the last is the largest and in use; launches were prepared with the others
  std::vector<DeviceBuffer> inputs;      ///< roles, and what the pattern reads
  std::vector<Fingerprint> fingerprints; ///< of inputs
  std::vector<heddle_operand> operands;
  struct ArgumentGradient {
    std::vector<int64_t> shape;
    GuardedBuffer buffer;
  };
  std::vector<ArgumentGradient> ofArguments;
  std::vector<heddle_gradient> gradients; ///< what args point to
  AttentionArgs args{};
};

/// Microseconds of one launch, the L2 cache flushed before it.
class LaunchTimer {
public:
  /// `limitSeconds`: what takes longer is taken for a launch that never ends. Nothing: wait for ever.
  static Result<LaunchTimer> create(const Device &device, std::optional<double> limitSeconds = {});
  /// unavailable: the launch did not end in time. Nothing can stop it, so the device is abandoned then.
  Result<double> time(const std::function<Status()> &launch);

private:
  LaunchTimer(const Device &device, std::optional<double> limitSeconds, DeviceBuffer flush, DeviceEvent start,
              DeviceEvent stop)
      : device(device), limitSeconds(limitSeconds), flush(std::move(flush)), start(std::move(start)),
        stop(std::move(stop)) {}
  Status wait();

  Device device;
  std::optional<double> limitSeconds;
  DeviceBuffer flush;
  DeviceEvent start, stop;
};

struct Repetition {
  int64_t count = 1;                      ///< launches, at least one
  std::vector<Role> addedInAnyOrder = {}; ///< as ScheduleFacts
};

/// Launches so many times, results poisoned before each, and compares each launch's bits with those of the first, which
/// `results` hold afterwards. invalidArgument: a launch left an element unwritten or gave other bits; the message names
/// the launch, the element, both values and their bits. Where only sums in any order differ, all launches are made
/// first, and the message says so.
Status repeatLaunch(DeviceProblem &problem, const std::function<Status()> &launch, const Repetition &repetition,
                    RoleTensors &results);

} // namespace heddle
