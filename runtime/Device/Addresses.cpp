//===- Addresses.cpp - asking the driver about memory and streams -----------===//
#include "runtime/Device/Addresses.h"

namespace heddle {
namespace {

std::string gpu(int64_t ordinal) { return "GPU " + std::to_string(ordinal); }

// Whether kernels in the current context can read host memory that the driver knows nothing of (HMM, Grace).
bool readsPageableMemory(const DeviceState &state) {
  int value = 0;
  return state.driver->deviceGetAttribute(&value, cuda::kAttributePageableMemoryAccess, state.ordinal) == cuda::kSuccess && value != 0;
}

Status checkAddress(const DeviceState &state, const std::string &name, const void *address) {
  const Driver &driver = *state.driver;
  const cuda::DevicePointer pointer = reinterpret_cast<uintptr_t>(address);
  cuda::DevicePointer reached = 0;
  if (driver.pointerGetAttribute(&reached, cuda::kPointerDevicePointer, pointer) != cuda::kErrorInvalidValue)
    return {};
  unsigned memoryType = 0;
  int owner = -1;
  const bool isKnown = driver.pointerGetAttribute(&memoryType, cuda::kPointerMemoryType, pointer) == cuda::kSuccess;
  if (!isKnown && readsPageableMemory(state))
    return {};
  const bool hasOwner = isKnown && driver.pointerGetAttribute(&owner, cuda::kPointerDeviceOrdinal, pointer) == cuda::kSuccess;
  return Status::invalidArgument("attention arguments: " + name + ": address: expected memory that " + gpu(state.ordinal) + " can reach, got " +
                                 (hasOwner ? "memory of " + gpu(owner) : std::string("memory that the driver does not know: of the host, or freed")));
}

bool isEmpty(const heddle_tensor &tensor) { return tensor.size[0] == 0 || tensor.size[1] == 0 || tensor.size[2] == 0 || tensor.size[3] == 0; }

// Of the current context or another one; -1 if the driver does not say.
int ordinalOf(const Driver &driver, cuda::Context context) {
  cuda::DeviceOrdinal ordinal = -1;
  cuda::Context popped = nullptr;
  if (driver.ctxPushCurrent(context) != cuda::kSuccess)
    return -1;
  if (driver.ctxGetDevice(&ordinal) != cuda::kSuccess)
    ordinal = -1;
  driver.ctxPopCurrent(&popped);
  return ordinal;
}

} // namespace

Status checkAddresses(const LoadedKernel &kernel, const CallInputs &inputs) {
  const DeviceState &state = *kernel.device.state();
  const heddle_attention_args &args = inputs.args;
  if (!state.driver->pointerGetAttribute)
    return {};
  const std::pair<const char *, const heddle_tensor *> tensors[] = {{"q", &args.q}, {"k", &args.k}, {"v", &args.v}, {"out", &args.out}};
  for (const auto &[name, tensor] : tensors)
    if (!isEmpty(*tensor))
      HEDDLE_TRY(checkAddress(state, name, tensor->ptr));
  const std::pair<const char *, const void *> others[] = {
      {"lse", args.lse}, {"carry_out", args.carry_out}, {"carry_lse", args.carry_lse}, {"workspace", args.workspace_bytes > 0 ? args.workspace : nullptr}};
  for (const auto &[name, address] : others)
    if (address)
      HEDDLE_TRY(checkAddress(state, name, address));
  for (int64_t i = 0; i < kMaxRuntimeSizes; ++i)
    if ((kernel.needs.operandMask >> i & 1) != 0 && inputs.operands[i])
      HEDDLE_TRY(checkAddress(state, "operands: pointer number " + std::to_string(i), inputs.operands[i]));
  return {};
}

Status explainRefusal(const LoadedKernel &kernel, cuda::Stream stream, cuda::Code code, Status failure) {
  const DeviceState &state = *kernel.device.state();
  const bool isAboutHandles = code == cuda::kErrorInvalidHandle || code == cuda::kErrorInvalidContext;
  cuda::Context owner = nullptr;
  if (!isAboutHandles || !stream || !state.driver->streamGetCtx || state.driver->streamGetCtx(stream, &owner) != cuda::kSuccess ||
      owner == state.context)
    return failure;
  const int ordinal = ordinalOf(*state.driver, owner);
  return Status::invalidArgument("launch: stream: expected one of the context that the kernel is loaded into, on " + gpu(state.ordinal) +
                                 ", got one of another context" + (ordinal >= 0 ? " on " + gpu(ordinal) : "") + "; " + failure.message());
}

} // namespace heddle
