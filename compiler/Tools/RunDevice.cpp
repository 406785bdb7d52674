// Owns the choice of the kernel (database first, else compiled now) and the copies around its launches.
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Measure/KeySplit.h"
#include "compiler/Pattern/CallRows.h"
#include "compiler/Session/ChooseKernel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/RunTarget.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace heddle::cli {
namespace {

KernelShape kernelShapeOf(const RunCall &call, const GpuArch &arch, DType out) {
  KernelShape shape;
  shape.arch = &arch;
  shape.kind = call.inputs.kind;
  const bool isOfFloatOut = call.inputs.dtype() == kAccumulator && !shape.kind.find(Role::q); // a forward call's fp32
  shape.elements = isOfFloatOut ? CallElements(kDefaultDType, kAccumulator) : call.inputs.elements(out);
  shape.elements.precision = call.inputs.precision;
  shape.headDim = call.inputs.sizes.headDim ? call.inputs.sizes.headDim : call.inputs.sizes.valueDim;
  shape.valueDim = call.inputs.sizes.valueDim;
  shape.queryRows = queryRowsOf(call.shape, shape);
  return shape;
}

Result<ChosenKernel> kernelFor(const RunCall &call, const StoreStack &stores, const Device &device, DType out) {
  HEDDLE_ASSIGN(const GpuArch *arch, archOf(device));
  return chooseKernel({call.file, call.shape, kernelShapeOf(call, *arch, out), call.config,
                       /*cutsBlocks=*/call.splitKeys.has_value()},
                      stores, device);
}

/// Milliseconds of the second of two launches.
Result<double> launchTwice(const Device &device, const std::function<Status()> &launch) {
  HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(device));
  HEDDLE_TRY(launch());
  HEDDLE_ASSIGN(double us, timer.time(launch));
  return us / 1000;
}

/// What the call asks for, of a kernel that was chosen.
Result<std::optional<Repetition>> repetitionOf(const RunCall &call, const KernelRecord &record) {
  if (!call.repeat)
    return std::optional<Repetition>();
  HEDDLE_ASSIGN(ConfigSummary config, summarizeConfig(record.config));
  return std::optional<Repetition>({*call.repeat, std::move(config.addedInAnyOrder)});
}

/// Times the launch and fills `result` with what it writes; repeats it if that is asked for.
Status launchInto(RunResult &result, const std::optional<Repetition> &repetition, const Device &device,
                  DeviceProblem &problem, const std::function<Status()> &launch) {
  HEDDLE_TRY(problem.poison());
  HEDDLE_ASSIGN(result.ms, launchTwice(device, launch));
  if (repetition)
    return repeatLaunch(problem, launch, *repetition, result);
  if (problem.addsToResults()) { // which two launches have done
    HEDDLE_TRY(problem.poison());
    HEDDLE_TRY(launch());
  }
  return problem.download(result);
}

/// Two NaNs differ infinitely, two equal infinities not at all.
double largestDifference(const HostTensor &a, const HostTensor &b) {
  double largest = 0;
  for (int64_t i = 0, end = a.elements(); i < end; ++i) {
    double left = a.get(i), right = b.get(i);
    double difference = left == right ? 0 : std::abs(left - right);
    largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
  }
  return largest;
}

/// The call again, as two launches; `result` holds what one launch gave, and then what the two did.
Status runSplit(const RunCall &call, const StoreStack &stores, const Kernel &kernel, DeviceProblem &problem,
                RunResult &result) {
  HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(call, stores, kernel.device(), kAccumulator));
  HEDDLE_ASSIGN(Kernel first, Kernel::load(kernel.device(), chosen.record));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_ASSIGN(KeySplit split, KeySplit::create(first, kernel, args, *call.splitKeys));
  HEDDLE_ASSIGN(const std::optional<Repetition> repetition, repetitionOf(call, chosen.record));
  RunResult whole = emptyResult(call);
  std::swap(whole.out, result.out);
  std::swap(whole.lse, result.lse);
  HEDDLE_TRY(launchInto(result, repetition, kernel.device(), problem, [&] { return split.launch(nullptr); }));
  result.split = SplitDifference{largestDifference(result.out, whole.out), largestDifference(result.lse, whole.lse)};
  return {};
}

} // namespace

Status addFromForwardOnDevice(const RunCall &call, const DatabaseOptions &database, AttentionInputs &inputs) {
  HEDDLE_ASSIGN(Device device, Device::open());
  HEDDLE_ASSIGN(StoreStack stores, database.openForLookup());
  return addFromForward(inputs, [&](const AttentionInputs &given) -> Result<RoleTensors> {
    const RunCall forward{call.file, given, call.shape, call.scale};
    HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(forward, stores, device, forward.outDType()));
    return launchOnce(device, {call.file, call.shape, given, call.scale}, chosen.record);
  });
}

Result<RunResult> runOnDevice(const RunCall &call, const DatabaseOptions &database) {
  if (call.scale == 0)
    return Status::unsupported("scale 0 is served by --target=cpu only");
  StoreStack stores; // with --config a database is asked for this very code, if one is given
  if (call.config.empty() || !database.given.empty()) {
    HEDDLE_ASSIGN(stores, database.openForLookup());
  }
  HEDDLE_ASSIGN(Device device, Device::open());
  HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(call, stores, device, call.outDType()));
  if (!isQuiet())
    std::cerr << "heddle: kernel " << chosen.origin << '\n';
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, chosen.record));
  RunResult result = emptyResult(call);
  result.kernel = chosen.origin + ", " + device.info().identity.deviceName;
  HEDDLE_ASSIGN(DeviceProblem problem,
                DeviceProblem::create(device, {call.file, call.shape, call.inputs, call.scale, call.outDType()}));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
  HEDDLE_ASSIGN(const std::optional<Repetition> repetition, repetitionOf(call, chosen.record));
  HEDDLE_TRY(launchInto(result, repetition, device, problem, [&] { return launch.launch(nullptr); }));
  HEDDLE_ASSIGN(result.argumentGradients, problem.argumentGradients());
  if (call.splitKeys)
    HEDDLE_TRY(runSplit(call, stores, kernel, problem, result));
  return result;
}

} // namespace heddle::cli
