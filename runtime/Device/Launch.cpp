#include "runtime/Device/LaunchGraph.h"
#include "runtime/Device/LoadedKernel.h"
#include "runtime/Device/OwnZeros.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>

namespace heddle {
namespace {

#ifdef HEDDLE_UNCOUNTED // what counting costs is measured against: tests/unit/prepared_cost.sh
constexpr bool kIsCounted = false;
#else
constexpr bool kIsCounted = true;
#endif
constexpr int64_t kWorkspaceAlignment = 256;

Status checkLimits(const LoadedCode &kernel, const LaunchGeometry &geometry) {
  if (geometry.sharedBytes > kernel.dynamicSharedLimit)
    return Status::unsupported("launch: the kernel needs " + std::to_string(geometry.sharedBytes) +
                               " bytes of dynamic shared memory, this GPU allows " +
                               std::to_string(kernel.dynamicSharedLimit));
  if (geometry.block < 1 || geometry.block > kernel.blockLimit)
    return Status::unsupported("launch: the plan asks for " + std::to_string(geometry.block) +
                               " threads a block, the kernel allows 1 to " + std::to_string(kernel.blockLimit));
  return {};
}

Status checkWorkspace(const AttentionArgs &args, int64_t needed) {
  if (args.workspace_bytes < uint64_t(needed))
    return Status::invalidArgument("attention arguments: workspace_bytes: expected at least " + std::to_string(needed) +
                                   ", got " + std::to_string(args.workspace_bytes));
  if (needed > 0 && (!args.workspace || reinterpret_cast<uintptr_t>(args.workspace) % kWorkspaceAlignment != 0))
    return Status::invalidArgument(
        std::string("attention arguments: workspace: expected device memory at a multiple of 256 bytes, got ") +
        (args.workspace ? "an unaligned address" : "null"));
  return {};
}

// The arguments of a call, and its sizes with those of one round. Tensor maps are those of the whole call.
struct RoundInputs {
  const CallInputs &call;
  const LaunchSymbols &symbols;
};

// Of launch `index`, behind those of the launches before it.
Status evaluateClears(const LoadedKernel &kernel, const RoundInputs &inputs, size_t index, EvaluatedCall &call) {
  for (const ClearSpec &spec : kernel.plan.launches[index].clears) {
    HEDDLE_ASSIGN(int64_t offset, spec.offset.evaluate(inputs.symbols));
    HEDDLE_ASSIGN(int64_t words, spec.words.evaluate(inputs.symbols));
    const bool isRegion = spec.target.kind == PointerSource::Kind::region;
    const int64_t limit = isRegion ? inputs.call.layout.bytes[spec.target.index] : int64_t(1) << 40;
    if (offset < 0 || words < 0 || offset > limit || words > (limit - offset) / 4)
      return Status::internal("launch: the plan clears " + std::to_string(words) + " words at byte " +
                              std::to_string(offset) + " of " + spec.target.str() + ", outside its " +
                              std::to_string(limit) + " bytes");
    cuda::DevicePointer base = reinterpret_cast<uintptr_t>(inputs.call.pointer(spec.target));
    if (words > 0)
      call.clears[call.clearCount++] = {base + cuda::DevicePointer(offset), spec.value, size_t(words)};
  }
  call.launches[index].clearEnd = call.clearCount;
  return {};
}

template <class T> void store(unsigned char *slot, T value) { std::memcpy(slot, &value, sizeof(value)); }

// The bytes behind a null pointer are null too.
Status fillPointer(const RoundInputs &inputs, const SlotSpec &spec, unsigned char *slot) {
  HEDDLE_ASSIGN(int64_t bytes, spec.expr.evaluate(inputs.symbols));
  const uintptr_t base = reinterpret_cast<uintptr_t>(inputs.call.pointer(spec.pointer));
  store(slot, base ? base + uintptr_t(bytes) : 0);
  return {};
}

Status fillSlot(const LoadedKernel &kernel, const RoundInputs &inputs, const KernelLaunch &launch, const SlotSpec &spec,
                unsigned char *slot) {
  switch (spec.kind) {
  case SlotSpec::Kind::f32:
    store(slot, inputs.call.scaleLog2);
    return {};
  case SlotSpec::Kind::ptr:
    return fillPointer(inputs, spec, slot);
  case SlotSpec::Kind::tensorMap:
    return encodeTensorMap(kernel, inputs.call, launch.tensorMaps[size_t(spec.tensorMap)], slot);
  case SlotSpec::Kind::i32:
  case SlotSpec::Kind::i64:
    break;
  }
  HEDDLE_ASSIGN(int64_t value, spec.expr.evaluate(inputs.symbols));
  if (spec.kind == SlotSpec::Kind::i64) {
    store(slot, value);
    return {};
  }
  if (value < INT32_MIN || value > INT32_MAX)
    return Status::invalidArgument("attention arguments: " + spec.expr.str() + ": expected a value of 32 bits, got " +
                                   std::to_string(value));
  store(slot, int32_t(value));
  return {};
}

// Parameter blocks follow each other, each at a multiple of kParamAlignment.
Status fillParams(const LoadedKernel &kernel, const RoundInputs &inputs, size_t index, EvaluatedCall &call) {
  const KernelLaunch &launch = kernel.plan.launches[index];
  EvaluatedLaunch &evaluated = call.launches[index];
  const size_t alignment = size_t(kParamAlignment);
  const size_t end = index == 0 ? 0 : call.launches[index - 1].paramBegin + call.launches[index - 1].paramBytes;
  evaluated.paramBegin = (end + alignment - 1) / alignment * alignment;
  evaluated.paramBytes = size_t(launch.paramBytes);
  unsigned char *params = call.params + evaluated.paramBegin;
  std::memset(params, 0, evaluated.paramBytes);
  for (const SlotSpec &spec : launch.slots)
    HEDDLE_TRY(fillSlot(kernel, inputs, launch, spec, params + spec.offset));
  return {};
}

// What was asked for beside what is allowed, behind the driver's error.
Status launchFailure(const LoadedKernel &kernel, size_t index, const EvaluatedLaunch &launch, cuda::Code result) {
  Status failure = kernel.device.state()->driver->check(result, "launch", "cuLaunchKernel");
  auto num = [](int64_t value) { return std::to_string(value); };
  const LoadedCode &code = kernel.codes[index];
  const LaunchGeometry &geometry = launch.geometry;
  return {failure.code(), failure.message() + "; grid " + num(geometry.grid[0]) + " x " + num(geometry.grid[1]) +
                              " x " + num(geometry.grid[2]) + ", " + num(geometry.block) +
                              " threads a block (the kernel allows " + num(code.blockLimit) + "), " +
                              num(geometry.sharedBytes) + " bytes of dynamic shared memory (this GPU allows " +
                              num(code.dynamicSharedLimit) + "), " + num(int64_t(launch.paramBytes)) +
                              " bytes of parameters"};
}

bool isSampling() { return __builtin_expect(Counters::get().sampleEvery.load(std::memory_order_relaxed) != 0, 0); }

// With events around it.
template <class F>
[[gnu::noinline]] Status timedLaunch(const LoadedKernel &kernel, cuda::Stream stream, const CallInputs &call,
                                     F launch) {
  DeviceState &state = *kernel.device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status("launch"));
  LaunchSampler::Sample *sample = state.sampler.begin(kernel, stream, call);
  Status status = launch();
  if (sample)
    state.sampler.end(state, stream, *sample, status.isOk());
  return status;
}

} // namespace

Status checkCall(const LoadedKernel &kernel, const AttentionArgs &args, CheckedCall &checked) {
  LaunchSymbols &symbols = checked.inputs.symbols;
  HEDDLE_TRY(checkArguments(kernel.needs, kernel.device.info().identity.smCount, args, checked.inputs));
  HEDDLE_ASSIGN(const int64_t planned, kernel.plan.roundRows.evaluate(symbols));
  if (planned < 0)
    return Status::internal("launch: the plan has rounds of " + std::to_string(planned) + " rows");
  const int64_t rows = symbols[LaunchSymbol::seqlenQ];
  checked.roundRows = planned == 0 ? rows : planned;
  checked.rounds = planned == 0 || rows == 0 ? 1 : (rows - 1) / planned + 1;
  HEDDLE_ASSIGN(checked.inputs.layout, evaluateWorkspace(kernel.plan, symbols));
  return {};
}

// What launches of one round are told of its rows.
static LaunchSymbols symbolsOf(const CheckedCall &checked, int64_t round) {
  LaunchSymbols symbols = checked.inputs.symbols;
  const int64_t first = round * checked.roundRows;
  symbols[LaunchSymbol::roundFirst] = first;
  symbols[LaunchSymbol::roundRows] = std::min(checked.roundRows, symbols[LaunchSymbol::seqlenQ] - first);
  return symbols;
}

Status evaluateRound(const LoadedKernel &kernel, const CheckedCall &checked, int64_t round, EvaluatedCall &call) {
  const LaunchSymbols symbols = symbolsOf(checked, round);
  call.clearCount = 0;
  bool isEmpty = true;
  for (size_t i = 0; i < kernel.codes.size(); ++i) {
    LaunchGeometry &geometry = call.launches[i].geometry;
    HEDDLE_ASSIGN(geometry, evaluateGeometry(kernel.plan.launches[i], symbols));
    isEmpty = isEmpty && geometry.isEmpty();
  }
  if (isEmpty)
    return {};
  for (size_t i = 0; i < kernel.codes.size(); ++i)
    HEDDLE_TRY(checkLimits(kernel.codes[i], call.launches[i].geometry));
  HEDDLE_TRY(checkWorkspace(checked.inputs.args, checked.inputs.layout.totalBytes));
  std::optional<ContextScope> scope; // the driver encodes tensor maps for the current context
  if (kernel.hasTensorMaps) {
    scope.emplace(*kernel.device.state());
    HEDDLE_TRY(scope->status("prepare"));
  }
  const RoundInputs inputs{checked.inputs, symbols};
  for (size_t i = 0; i < kernel.codes.size(); ++i) {
    HEDDLE_TRY(evaluateClears(kernel, inputs, i, call));
    HEDDLE_TRY(fillParams(kernel, inputs, i, call));
  }
  return {};
}

static Status launchOne(const LoadedKernel &kernel, const EvaluatedCall &call, size_t index, cuda::Stream stream) {
  const Driver &driver = *kernel.device.state()->driver;
  const EvaluatedLaunch &launch = call.launches[index];
  for (int i = index == 0 ? 0 : call.launches[index - 1].clearEnd; i < launch.clearEnd; ++i)
    if (cuda::Code code =
            driver.memsetWords(call.clears[i].address, call.clears[i].value, call.clears[i].words, stream))
      return explainRefusal(kernel, stream, code, driver.check(code, "launch", "cuMemsetD32Async"));
  // The kernel has one parameter. The driver knows where it lies: a block that holds tensor maps is aligned to 64
  // bytes.
  void *params[] = {call.params + launch.paramBegin};
  const LaunchGeometry &geometry = launch.geometry;
  cuda::Code result = driver.launchKernel(
      kernel.codes[index].function, unsigned(geometry.grid[0]), unsigned(geometry.grid[1]), unsigned(geometry.grid[2]),
      unsigned(geometry.block), 1, 1, unsigned(geometry.sharedBytes), stream, params, nullptr);
  return result == cuda::kSuccess
             ? Status()
             : explainRefusal(kernel, stream, result, launchFailure(kernel, index, launch, result));
}

Status launchCall(const LoadedKernel &kernel, const EvaluatedCall &call, cuda::Stream stream) {
  bool isEmpty = true;
  for (size_t i = 0; i < kernel.codes.size(); ++i)
    isEmpty = isEmpty && call.launches[i].geometry.isEmpty();
  if (isEmpty)
    return {};
  ContextScope scope(*kernel.device.state());
  if (!scope.isCurrent())
    return scope.status("launch");
  for (size_t i = 0; i < kernel.codes.size(); ++i)
    if (!call.launches[i].geometry.isEmpty())
      HEDDLE_TRY(launchOne(kernel, call, i, stream));
  return {};
}

// From the second on; `call` is only room.
static Status launchRounds(const LoadedKernel &kernel, const CheckedCall &checked, cuda::Stream stream,
                           EvaluatedCall &call) {
  for (int64_t round = 1; round < checked.rounds; ++round) {
    HEDDLE_TRY(evaluateRound(kernel, checked, round, call));
    HEDDLE_TRY(launchCall(kernel, call, stream));
  }
  return {};
}

// The first round into `call`, after the last one: what is refused is refused before anything is launched.
static Status evaluateFirst(const LoadedKernel &kernel, const CheckedCall &checked, EvaluatedCall &call) {
  if (checked.rounds > 1)
    HEDDLE_TRY(evaluateRound(kernel, checked, checked.rounds - 1, call));
  return evaluateRound(kernel, checked, 0, call);
}

Status Kernel::launch(cuda::Stream stream, const AttentionArgs &args) const {
  CheckedCall checked;
  ParamRoom room;
  EvaluatedCall call(room.bytes);
  HEDDLE_TRY(checkCall(*loaded, args, checked));
  HEDDLE_TRY(checkMemory(loaded->needs, checked.inputs));
  HEDDLE_TRY(evaluateFirst(*loaded, checked, call));
  if (const int64_t bytes = checked.inputs.layout.totalBytes)
    Counters::get().workspace.touch(bytes);
  auto launch = [&]() -> Status {
    HEDDLE_TRY(launchCall(*loaded, call, stream));
    return launchRounds(*loaded, checked, stream, call);
  };
  Status status = isSampling() ? timedLaunch(*loaded, stream, checked.inputs, launch) : launch();
  if (status.isOk())
    loaded->row->launches.add();
  return status;
}

KernelRow &Kernel::row() const { return *loaded->row; }

Result<int64_t> Kernel::workspaceBytes(const AttentionArgs &args) const {
  CheckedCall checked;
  HEDDLE_TRY(checkCall(*loaded, args, checked));
  return checked.inputs.layout.totalBytes;
}

struct PreparedState {
  struct Release {
    void operator()(unsigned char *params) const { ::operator delete[](params, std::align_val_t(kParamAlignment)); }
  };
  std::shared_ptr<LoadedKernel> kernel;
  CheckedCall checked;
  EvaluatedCall call{nullptr}; // of the first round
  std::unique_ptr<unsigned char[], Release> params;
  std::optional<OwnZeros> zeros;
  std::unique_ptr<LaunchGraph> graph; // of all that one launch does, or null
  KernelRow *row = nullptr;
  std::atomic<int64_t> pairs{0};
  int64_t workspaceBytes = 0; // counted

  ~PreparedState() { Counters::get().workspace.take(workspaceBytes); }
  void countLaunch() const {
    KernelRow &counted = *row;
    counted.launches.add(), counted.pairs.add(pairs.load(std::memory_order_relaxed));
  }
  Status launchKernels(cuda::Stream stream) const; // one by one
  [[gnu::noinline]] Status launchTimed(cuda::Stream stream) const;
};

// Servers keep thousands of prepared calls: each has room for its own parameters only.
static void keepCall(const LoadedKernel &kernel, const EvaluatedCall &call, PreparedState &state) {
  const EvaluatedLaunch &last = call.launches[kernel.codes.size() - 1];
  const size_t used = last.paramBegin + last.paramBytes;
  state.params.reset(static_cast<unsigned char *>(::operator new[](used, std::align_val_t(kParamAlignment))));
  std::memcpy(state.params.get(), call.params, used);
  state.call = call;
  state.call.params = state.params.get();
}

Result<PreparedLaunch> Kernel::prepare(const AttentionArgs &args) const {
  auto state = std::make_unique<PreparedState>();
  ParamRoom room;
  EvaluatedCall call(room.bytes);
  state->kernel = loaded;
  state->row = loaded->row;
  HEDDLE_TRY(checkCall(*loaded, args, state->checked));
  HEDDLE_TRY(checkMemory(loaded->needs, state->checked.inputs));
  HEDDLE_TRY(evaluateFirst(*loaded, state->checked, call));
  ContextScope scope(*loaded->device.state());
  HEDDLE_TRY(scope.status("prepare"));
  HEDDLE_TRY(checkAddresses(*loaded, state->checked.inputs));
  keepCall(*loaded, call, *state);
  if (state->checked.rounds == 1) // else rounds are evaluated anew
    state->zeros = OwnZeros::give(*loaded, state->checked.inputs, state->call);
  if (state->checked.rounds == 1 && !(args.flags & HEDDLE_WITHOUT_GRAPH))
    state->graph = LaunchGraph::make(*loaded, state->call);
  Counters::get().workspace.add(state->workspaceBytes = state->checked.inputs.layout.totalBytes);
  return PreparedLaunch(std::move(state));
}

PreparedLaunch::PreparedLaunch(std::unique_ptr<PreparedState> state) : state(std::move(state)) {}
PreparedLaunch::PreparedLaunch(PreparedLaunch &&) noexcept = default;
PreparedLaunch &PreparedLaunch::operator=(PreparedLaunch &&) noexcept = default;
PreparedLaunch::~PreparedLaunch() = default;

Status PreparedState::launchKernels(cuda::Stream stream) const {
  HEDDLE_TRY(launchCall(*kernel, call, stream));
  if (checked.rounds == 1)
    return {};
  ParamRoom room;
  EvaluatedCall other(room.bytes);
  return launchRounds(*kernel, checked, stream, other);
}

Status PreparedState::launchTimed(cuda::Stream stream) const {
  Status status = timedLaunch(*kernel, stream, checked.inputs,
                              [&] { return graph && graph->launch(stream) ? Status() : launchKernels(stream); });
  if (status.isOk())
    countLaunch();
  return status;
}

Status PreparedLaunch::launch(cuda::Stream stream) const {
  const PreparedState &call = *state;
  if (kIsCounted && isSampling())
    return call.launchTimed(stream);
  if (!call.graph || !call.graph->launch(stream))
    HEDDLE_TRY(call.launchKernels(stream));
  if (kIsCounted)
    call.countLaunch();
  return {};
}

void PreparedLaunch::setPairs(int64_t pairs) { state->pairs.store(pairs, std::memory_order_relaxed); }

const LaunchGeometry &PreparedLaunch::geometry() const { return state->call.launches[0].geometry; }

heddle_tensor contiguousTensor(void *ptr, DType dtype, const std::array<int64_t, 4> &size) {
  const auto [batch, rows, heads, dim] = size;
  return {ptr, traitsOf(dtype).code, 0, {batch, rows, heads, dim}, {rows * heads * dim, heads * dim, dim, 1}};
}

void bindRole(AttentionArgs &args, Role role, void *ptr, DType dtype, const std::vector<int64_t> &shape) {
  auto bind = [&](auto &field) {
    if constexpr (std::is_same_v<decltype(field), heddle_tensor &>)
      field = contiguousTensor(ptr, dtype, {shape[0], shape[1], shape[2], shape[3]});
    else
      field = static_cast<std::remove_reference_t<decltype(field)>>(ptr);
  };
  switch (role) {
#define HEDDLE_BIND_ROLE(identifier, name, ...)                                                                        \
  case Role::identifier:                                                                                               \
    bind(args.name);                                                                                                   \
    break;
    HEDDLE_ROLES(HEDDLE_BIND_ROLE)
#undef HEDDLE_BIND_ROLE
  }
}

} // namespace heddle
