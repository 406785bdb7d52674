//===- RunDevice.cpp - one attention call on a GPU ----------------------------===//
// Owns the choice of the kernel (database first, else compiled now) and the copies around one launch.
//===----------------------------------------------------------------------===//
#include "compiler/Tools/RunTarget.h"
#include "runtime/Device/Kernel.h"

#include <filesystem>
#include <iostream>

namespace heddle::cli {
namespace {

/// The row for a GPU that calls itself "sm_90".
Result<const GpuArch *> archOf(const Device &device) {
  const std::string &name = device.info().identity.arch;
  int capability = 0;
  for (char digit : name.substr(name.find('_') + 1))
    if (digit >= '0' && digit <= '9')
      capability = capability * 10 + (digit - '0');
  return findGpuArchFor(capability / 10, capability % 10);
}

struct ChosenKernel {
  KernelRecord record;
  std::string origin; ///< in words
};

/// The winner of the database, or an empty record if there is no database or nothing in it fits.
Result<ChosenKernel> lookUp(const RunCall &call, const DatabaseOptions &database, const Device &device,
                            const KernelFamily &family) {
  if (database.given.empty() && !std::filesystem::exists(database.path()))
    return ChosenKernel{};
  HEDDLE_ASSIGN(Store store, database.open(StoreMode::readOnly));
  WinnerKey key = winnerKey(call.file, call.shape, family, device.info().identity);
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(key, device.info().driverVersion)));
  if (found.match == MatchKind::none)
    return ChosenKernel{};
  return ChosenKernel{std::move(found.record),
                      std::string("from ") + store.path() + ", match: " + matchKindName(found.match)};
}

Result<ChosenKernel> chooseKernel(const RunCall &call, const DatabaseOptions &database, const Device &device) {
  KernelShape shape;
  HEDDLE_ASSIGN(shape.arch, archOf(device));
  shape.dtype = call.inputs.dtype();
  shape.headDim = call.inputs.sizes.headDim;
  shape.valueDim = call.inputs.sizes.valueDim;
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(call.file));
  KernelRequest request = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(ChosenKernel stored, lookUp(call, database, device, familyOf(prepared, request)));
  if (!stored.origin.empty())
    return stored;
  HEDDLE_ASSIGN(KernelConfig config, chooseConfig(request, std::nullopt));
  HEDDLE_ASSIGN(CompiledVariant variant, compileVariant(prepared, request, config));
  return ChosenKernel{std::move(variant.record), "compiled now, untuned default: no kernel in " + database.path()};
}

/// q, k, v, out and lse on the GPU. Results start as NaN, so that what a kernel leaves out shows.
struct DeviceTensors {
  DeviceBuffer q, k, v, out, lse;

  static Result<DeviceTensors> upload(const Device &device, const AttentionInputs &inputs, const RunResult &shapes) {
    DeviceTensors tensors;
    HEDDLE_ASSIGN(tensors.q, copied(device, inputs.q));
    HEDDLE_ASSIGN(tensors.k, copied(device, inputs.k));
    HEDDLE_ASSIGN(tensors.v, copied(device, inputs.v));
    HEDDLE_ASSIGN(tensors.out, poisoned(device, shapes.out));
    HEDDLE_ASSIGN(tensors.lse, poisoned(device, shapes.lse));
    return tensors;
  }

private:
  static Result<DeviceBuffer> copied(const Device &device, const HostTensor &tensor) {
    HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, tensor.data.size()));
    HEDDLE_TRY(buffer.copyFrom(tensor.data.data(), tensor.data.size()));
    return buffer;
  }
  static Result<DeviceBuffer> poisoned(const Device &device, const HostTensor &tensor) {
    HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, tensor.data.size()));
    HEDDLE_TRY(buffer.fillBytes(0xff));
    return buffer;
  }
};

std::vector<heddle_operand> runtimeSizes(const std::vector<int64_t> &parameters) {
  std::vector<heddle_operand> operands;
  for (size_t i = 0; i < parameters.size(); ++i) {
    heddle_operand operand{};
    operand.id = static_cast<int32_t>(i);
    operand.kind = HEDDLE_OPERAND_INT;
    operand.value.i64 = parameters[i];
    operands.push_back(operand);
  }
  return operands;
}

AttentionArgs argumentsOf(const RunCall &call, const DeviceTensors &tensors) {
  const AttentionSizes &sizes = call.inputs.sizes;
  DType dtype = call.inputs.dtype();
  AttentionArgs args = makeAttentionArgs();
  args.q = contiguousTensor(tensors.q.data(), dtype, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim);
  args.k = contiguousTensor(tensors.k.data(), dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim);
  args.v = contiguousTensor(tensors.v.data(), dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.valueDim);
  args.out = contiguousTensor(tensors.out.data(), dtype, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim);
  args.lse = static_cast<float *>(tensors.lse.data());
  attn::ProblemSizes positions = sizesOf(call.file, call.shape);
  args.q_origin = positions.qOrigin;
  args.k_origin = positions.kOrigin;
  args.scale = call.scale;
  return args;
}

/// Milliseconds of the second of two launches.
Result<double> launchTwice(const Kernel &kernel, const AttentionArgs &args) {
  HEDDLE_ASSIGN(DeviceEvent start, DeviceEvent::create(kernel.device()));
  HEDDLE_ASSIGN(DeviceEvent stop, DeviceEvent::create(kernel.device()));
  HEDDLE_ASSIGN(PreparedLaunch prepared, kernel.prepare(args));
  HEDDLE_TRY(prepared.launch(nullptr));
  HEDDLE_TRY(start.record());
  HEDDLE_TRY(prepared.launch(nullptr));
  HEDDLE_TRY(stop.record());
  HEDDLE_TRY(stop.synchronize());
  HEDDLE_ASSIGN(double us, stop.elapsedUsSince(start));
  return us / 1000;
}

} // namespace

Result<RunResult> runOnDevice(const RunCall &call, const DatabaseOptions &database) {
  if (call.scale == 0)
    return Status::unsupported("scale 0 is served by --target=cpu only");
  HEDDLE_ASSIGN(Device device, Device::open());
  HEDDLE_ASSIGN(ChosenKernel chosen, chooseKernel(call, database, device));
  std::cerr << "heddle: kernel " << chosen.origin << '\n';
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, chosen.record));
  RunResult result = emptyResult(call.inputs);
  result.kernel = chosen.origin + ", " + device.info().identity.deviceName;
  HEDDLE_ASSIGN(DeviceTensors tensors, DeviceTensors::upload(device, call.inputs, result));
  AttentionArgs args = argumentsOf(call, tensors);
  std::vector<heddle_operand> operands = runtimeSizes(call.shape.parameters);
  args.operands = operands.data();
  args.operand_count = operands.size();
  HEDDLE_ASSIGN(int64_t workspaceBytes, kernel.workspaceBytes(args));
  HEDDLE_ASSIGN(DeviceBuffer workspace, DeviceBuffer::allocate(device, workspaceBytes));
  args.workspace = workspace.data();
  args.workspace_bytes = workspaceBytes;
  HEDDLE_ASSIGN(result.ms, launchTwice(kernel, args));
  HEDDLE_TRY(tensors.out.copyTo(result.out.data.data(), result.out.data.size()));
  HEDDLE_TRY(tensors.lse.copyTo(result.lse.data.data(), result.lse.data.size()));
  return result;
}

} // namespace heddle::cli
