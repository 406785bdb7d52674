//===- Launch.cpp - from checked arguments to a launch ----------------------===//
#include "runtime/Device/LoadedKernel.h"
#include "runtime/Device/TensorMap.h"

#include <cstring>
#include <optional>

namespace heddle {
namespace {

constexpr int64_t kWorkspaceAlignment = 256;

Status checkLimits(const LoadedKernel &kernel, const LaunchGeometry &geometry) {
  if (geometry.sharedBytes > kernel.dynamicSharedLimit)
    return Status::unsupported("launch: the kernel needs " + std::to_string(geometry.sharedBytes) + " bytes of dynamic shared memory, this GPU allows " +
                               std::to_string(kernel.dynamicSharedLimit));
  if (geometry.block < 1 || geometry.block > kernel.blockLimit)
    return Status::unsupported("launch: the plan asks for " + std::to_string(geometry.block) + " threads a block, the kernel allows 1 to " +
                               std::to_string(kernel.blockLimit));
  return {};
}

Status checkWorkspace(const AttentionArgs &args, int64_t needed) {
  if (args.workspace_bytes < uint64_t(needed))
    return Status::invalidArgument("attention arguments: workspace_bytes: expected at least " + std::to_string(needed) + ", got " +
                                   std::to_string(args.workspace_bytes));
  if (needed > 0 && (!args.workspace || reinterpret_cast<uintptr_t>(args.workspace) % kWorkspaceAlignment != 0))
    return Status::invalidArgument(std::string("attention arguments: workspace: expected device memory at a multiple of 256 bytes, got ") +
                                   (args.workspace ? "an unaligned address" : "null"));
  return {};
}

Status evaluateClears(const LoadedKernel &kernel, const CallInputs &inputs, EvaluatedCall &call) {
  for (const ClearSpec &spec : kernel.plan.clears) {
    HEDDLE_ASSIGN(int64_t offset, spec.offset.evaluate(inputs.symbols));
    HEDDLE_ASSIGN(int64_t words, spec.words.evaluate(inputs.symbols));
    bool isWorkspace = spec.target.kind == PointerSource::Kind::workspace;
    int64_t limit = isWorkspace ? call.geometry.workspaceBytes : int64_t(1) << 40;
    if (offset < 0 || words < 0 || offset > limit || words > (limit - offset) / 4)
      return Status::internal("launch: the plan clears " + std::to_string(words) + " words at byte " + std::to_string(offset) + " of " +
                              spec.target.str() + ", outside its " + std::to_string(limit) + " bytes");
    cuda::DevicePointer base = reinterpret_cast<uintptr_t>(inputs.pointer(spec.target));
    if (words > 0)
      call.clears[call.clearCount++] = {base + cuda::DevicePointer(offset), spec.value, size_t(words)};
  }
  return {};
}

template <class T> void store(unsigned char *slot, T value) { std::memcpy(slot, &value, sizeof(value)); }

Status fillSlot(const LoadedKernel &kernel, const CallInputs &inputs, const SlotSpec &spec, unsigned char *slot) {
  switch (spec.kind) {
  case SlotSpec::Kind::f32: store(slot, inputs.scaleLog2); return {};
  case SlotSpec::Kind::ptr: store(slot, inputs.pointer(spec.pointer)); return {};
  case SlotSpec::Kind::tensorMap: return encodeTensorMap(kernel, inputs, kernel.plan.tensorMaps[size_t(spec.tensorMap)], slot);
  case SlotSpec::Kind::i32:
  case SlotSpec::Kind::i64: break;
  }
  HEDDLE_ASSIGN(int64_t value, spec.expr.evaluate(inputs.symbols));
  if (spec.kind == SlotSpec::Kind::i64) {
    store(slot, value);
    return {};
  }
  if (value < INT32_MIN || value > INT32_MAX)
    return Status::invalidArgument("attention arguments: " + spec.expr.str() + ": expected a value of 32 bits, got " + std::to_string(value));
  store(slot, int32_t(value));
  return {};
}

// What was asked for beside what is allowed, behind the driver's error.
Status launchFailure(const LoadedKernel &kernel, const EvaluatedCall &call, cuda::Code code) {
  Status failure = kernel.device.state()->driver->check(code, "launch", "cuLaunchKernel");
  auto num = [](int64_t value) { return std::to_string(value); };
  const LaunchGeometry &geometry = call.geometry;
  return {failure.code(), failure.message() + "; grid " + num(geometry.grid[0]) + " x " + num(geometry.grid[1]) + " x " + num(geometry.grid[2]) +
                              ", " + num(geometry.block) + " threads a block (the kernel allows " + num(kernel.blockLimit) + "), " +
                              num(geometry.sharedBytes) + " bytes of dynamic shared memory (this GPU allows " + num(kernel.dynamicSharedLimit) +
                              "), " + num(int64_t(call.paramBytes)) + " bytes of parameters"};
}

} // namespace

Status evaluateCall(const LoadedKernel &kernel, const AttentionArgs &args, bool checksWorkspace, EvaluatedCall &call) {
  CallInputs inputs;
  HEDDLE_TRY(checkArguments(kernel.record, kernel.needs, kernel.device.info().identity.smCount, args, inputs));
  HEDDLE_ASSIGN(call.geometry, evaluateGeometry(kernel.plan, inputs.symbols));
  if (!checksWorkspace || call.geometry.isEmpty())
    return {};
  HEDDLE_TRY(checkLimits(kernel, call.geometry));
  HEDDLE_TRY(checkWorkspace(inputs.args, call.geometry.workspaceBytes));
  HEDDLE_TRY(evaluateClears(kernel, inputs, call));
  std::optional<ContextScope> scope; // the driver encodes tensor maps for the current context
  if (!kernel.plan.tensorMaps.empty()) {
    scope.emplace(*kernel.device.state());
    HEDDLE_TRY(scope->status("prepare"));
  }
  call.paramBytes = size_t(kernel.plan.paramBytes);
  std::memset(call.params, 0, call.paramBytes);
  for (const SlotSpec &spec : kernel.plan.slots)
    HEDDLE_TRY(fillSlot(kernel, inputs, spec, call.params + spec.offset));
  return {};
}

Status launchCall(const LoadedKernel &kernel, const EvaluatedCall &call, cuda::Stream stream) {
  if (call.geometry.isEmpty())
    return {};
  const Driver &driver = *kernel.device.state()->driver;
  ContextScope scope(*kernel.device.state());
  HEDDLE_TRY(scope.status("launch"));
  for (int i = 0; i < call.clearCount; ++i)
    HEDDLE_TRY(driver.check(driver.memsetWords(call.clears[i].address, call.clears[i].value, call.clears[i].words, stream), "launch", "cuMemsetD32Async"));
  // The kernel has one parameter. The driver knows where it lies: a block that holds tensor maps is aligned to 64 bytes.
  void *params[] = {const_cast<unsigned char *>(call.params)};
  const LaunchGeometry &geometry = call.geometry;
  cuda::Code code = driver.launchKernel(kernel.function, unsigned(geometry.grid[0]), unsigned(geometry.grid[1]), unsigned(geometry.grid[2]),
                                        unsigned(geometry.block), 1, 1, unsigned(geometry.sharedBytes), stream, params, nullptr);
  return code == cuda::kSuccess ? Status() : launchFailure(kernel, call, code);
}

Status Kernel::launch(cuda::Stream stream, const AttentionArgs &args) const {
  EvaluatedCall call;
  HEDDLE_TRY(evaluateCall(*loaded, args, true, call));
  return launchCall(*loaded, call, stream);
}

Result<int64_t> Kernel::workspaceBytes(const AttentionArgs &args) const {
  EvaluatedCall call;
  HEDDLE_TRY(evaluateCall(*loaded, args, false, call));
  return call.geometry.workspaceBytes;
}

struct PreparedState {
  std::shared_ptr<LoadedKernel> kernel;
  EvaluatedCall call;
};

Result<PreparedLaunch> Kernel::prepare(const AttentionArgs &args) const {
  auto state = std::make_unique<PreparedState>();
  state->kernel = loaded;
  HEDDLE_TRY(evaluateCall(*loaded, args, true, state->call));
  return PreparedLaunch(std::move(state));
}

PreparedLaunch::PreparedLaunch(std::unique_ptr<PreparedState> state) : state(std::move(state)) {}
PreparedLaunch::PreparedLaunch(PreparedLaunch &&) noexcept = default;
PreparedLaunch &PreparedLaunch::operator=(PreparedLaunch &&) noexcept = default;
PreparedLaunch::~PreparedLaunch() = default;

Status PreparedLaunch::launch(cuda::Stream stream) const { return launchCall(*state->kernel, state->call, stream); }

const LaunchGeometry &PreparedLaunch::geometry() const { return state->call.geometry; }

heddle_tensor contiguousTensor(void *ptr, DType dtype, int64_t batch, int64_t rows, int64_t heads, int64_t dim) {
  return {ptr, int32_t(dtype) + 1, 0, {batch, rows, heads, dim}, {rows * heads * dim, heads * dim, dim, 1}};
}

} // namespace heddle
