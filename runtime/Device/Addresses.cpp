#include "runtime/Device/LoadedKernel.h"

namespace heddle {
namespace {

std::string gpu(int64_t ordinal) { return "GPU " + std::to_string(ordinal); }

// Whether kernels in the current context can read host memory that the driver knows nothing of (HMM, Grace).
bool readsPageableMemory(const DeviceState &state) {
  int value = 0;
  return state.driver->deviceGetAttribute(&value, cuda::kAttributePageableMemoryAccess, state.ordinal) ==
             cuda::kSuccess &&
         value != 0;
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
  const bool hasOwner =
      isKnown && driver.pointerGetAttribute(&owner, cuda::kPointerDeviceOrdinal, pointer) == cuda::kSuccess;
  return Status::invalidArgument(
      "attention arguments: " + name + ": address: expected memory that " + gpu(state.ordinal) + " can reach, got " +
      (hasOwner ? "memory of " + gpu(owner)
                : std::string("memory that the driver does not know: of the host, or freed")));
}

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
  for (const KindRole &known : kernel.needs.shape.kind.roles()) {
    const RoleSpec &role = specOf(known.role);
    const bool isUsed =
        role.form == RoleForm::tensor ? !isEmpty(inputs.tensor(known.role)) : inputs.address(known.role) != nullptr;
    if (isUsed)
      HEDDLE_TRY(checkAddress(state, role.name, inputs.address(known.role)));
  }
  if (args.workspace_bytes > 0 && args.workspace)
    HEDDLE_TRY(checkAddress(state, "workspace", args.workspace));
  for (int64_t i = 0; i < kMaxArguments; ++i)
    if ((kernel.needs.operandMask >> i & 1) != 0 && inputs.operands[i])
      HEDDLE_TRY(checkAddress(state, "operands: pointer number " + std::to_string(i), inputs.operands[i]));
  for (int64_t i = 0; i < kMaxArguments; ++i)
    if ((kernel.needs.gradientMask >> i & 1) != 0 && inputs.gradients[i])
      HEDDLE_TRY(checkAddress(state, "gradients: argument " + std::to_string(i), inputs.gradients[i]));
  return {};
}

Status explainRefusal(const LoadedKernel &kernel, cuda::Stream stream, cuda::Code code, Status failure) {
  const DeviceState &state = *kernel.device.state();
  const bool isAboutHandles = code == cuda::kErrorInvalidHandle || code == cuda::kErrorInvalidContext;
  cuda::Context owner = nullptr;
  if (!isAboutHandles || !stream || !state.driver->streamGetCtx ||
      state.driver->streamGetCtx(stream, &owner) != cuda::kSuccess || owner == state.context)
    return failure;
  const int ordinal = ordinalOf(*state.driver, owner);
  return Status::invalidArgument("launch: stream: expected one of the context that the kernel is loaded into, on " +
                                 gpu(state.ordinal) + ", got one of another context" +
                                 (ordinal >= 0 ? " on " + gpu(ordinal) : "") + "; " + failure.message());
}

} // namespace heddle
