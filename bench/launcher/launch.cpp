//===- launch.cpp - a stored kernel, launched without a compiler ----------===//
// Looks a pattern up by name in a kernel database, launches it on seeded random inputs and writes out and lse. Prints one
// JSON line: how the lookup matched, the median time, registers. `heddle bench` checks the results in its own process.
//===----------------------------------------------------------------------===//
#include "compiler/Io/AttentionInputs.h"
#include "runtime/Device/Kernel.h"
#include "runtime/Store/Store.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

using namespace heddle;

namespace {

/// "--name=value" arguments.
class Arguments {
public:
  Arguments(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
      std::string argument = argv[i];
      size_t equals = argument.find('=');
      values[argument.substr(0, equals)] = equals == std::string::npos ? "" : argument.substr(equals + 1);
    }
  }
  std::string text(const std::string &name) const {
    auto found = values.find("--" + name);
    return found == values.end() ? "" : found->second;
  }
  int64_t number(const std::string &name) const { return std::atoll(text(name).c_str()); }
  std::vector<int64_t> numbers(const std::string &name) const {
    std::vector<int64_t> result;
    std::stringstream stream(text(name));
    for (std::string item; std::getline(stream, item, ',');)
      result.push_back(std::atoll(item.c_str()));
    return result;
  }

private:
  std::map<std::string, std::string> values;
};

struct Tensors {
  DeviceBuffer q, k, v, out, lse, workspace;
};

Result<DeviceBuffer> upload(const Device &device, const HostTensor &tensor) {
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, tensor.data.size()));
  HEDDLE_TRY(buffer.copyFrom(tensor.data.data(), tensor.data.size()));
  return buffer;
}

Result<StoreLookup> findKernel(const Arguments &arguments, const Store &store, const Device &device, DType dtype,
                               const AttentionSizes &sizes) {
  HEDDLE_ASSIGN(NameRecord name, store.findName(arguments.text("name")));
  KernelFamily family;
  family.pattern = name.pattern;
  family.dtype = dtype;
  family.headDim = sizes.headDim;
  family.valueDim = sizes.valueDim;
  const DeviceInfo &info = device.info();
  ProblemBucket bucket = ProblemBucket::of(arguments.number("work-items"), info.identity.smCount,
                                           arguments.number("visited-tiles"), sizes.heads / sizes.kvHeads);
  return store.lookup(LookupQuery(WinnerKey(family, bucket, info.identity), info.driverVersion));
}

Result<double> medianUs(const Device &device, const PreparedLaunch &launch, int64_t repetitions) {
  HEDDLE_ASSIGN(DeviceBuffer flush, DeviceBuffer::allocate(device, std::max<int64_t>(device.info().l2Bytes * 4, 1 << 20)));
  HEDDLE_ASSIGN(DeviceEvent start, DeviceEvent::create(device));
  HEDDLE_ASSIGN(DeviceEvent stop, DeviceEvent::create(device));
  std::vector<double> times;
  for (int64_t i = 0; i < repetitions; ++i) {
    HEDDLE_TRY(flush.fillBytes(0));
    HEDDLE_TRY(start.record());
    HEDDLE_TRY(launch.launch(nullptr));
    HEDDLE_TRY(stop.record());
    HEDDLE_TRY(stop.synchronize());
    HEDDLE_ASSIGN(double us, stop.elapsedUsSince(start));
    times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Status run(const Arguments &arguments) {
  HEDDLE_ASSIGN(Store store, Store::open(arguments.text("db")));
  HEDDLE_ASSIGN(Device device, Device::open());
  std::optional<DType> parsed = parseDType(arguments.text("dtype"));
  if (!parsed)
    return Status::invalidArgument("expected --dtype=bf16 or fp16, got '" + arguments.text("dtype") + "'");
  DType dtype = *parsed;
  AttentionSizes sizes{arguments.number("batch"), arguments.number("seqlen"), arguments.number("seqlen-k"),
                       arguments.number("heads"), arguments.number("kv-heads"), arguments.number("head-dim"),
                       arguments.number("value-dim") ? arguments.number("value-dim") : arguments.number("head-dim")};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, dtype, arguments.number("seed")));
  HEDDLE_ASSIGN(StoreLookup found, findKernel(arguments, store, device, dtype, sizes));
  if (found.match == MatchKind::none)
    return Status::notFound("no kernel for '" + arguments.text("name") + "' in " + store.path());
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, found.record));

  Tensors tensors;
  HEDDLE_ASSIGN(tensors.q, upload(device, inputs.q));
  HEDDLE_ASSIGN(tensors.k, upload(device, inputs.k));
  HEDDLE_ASSIGN(tensors.v, upload(device, inputs.v));
  HostTensor out = HostTensor::zeros(dtype, {sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim});
  HostTensor lse = HostTensor::zeros(DType::fp32, {sizes.batch, sizes.heads, sizes.seqlenQ});
  HEDDLE_ASSIGN(tensors.out, DeviceBuffer::allocate(device, out.data.size()));
  HEDDLE_ASSIGN(tensors.lse, DeviceBuffer::allocate(device, lse.data.size()));
  HEDDLE_TRY(tensors.out.fillBytes(0xff)); // NaN: what is not written shows
  HEDDLE_TRY(tensors.lse.fillBytes(0xff));

  AttentionArgs args = makeAttentionArgs();
  args.q = contiguousTensor(tensors.q.data(), dtype, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim);
  args.k = contiguousTensor(tensors.k.data(), dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim);
  args.v = contiguousTensor(tensors.v.data(), dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.valueDim);
  args.out = contiguousTensor(tensors.out.data(), dtype, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim);
  args.lse = static_cast<float *>(tensors.lse.data());
  std::vector<heddle_operand> operands;
  for (int64_t size : arguments.numbers("sizes")) {
    heddle_operand operand{};
    operand.id = operands.size();
    operand.kind = HEDDLE_OPERAND_INT;
    operand.value.i64 = size;
    operands.push_back(operand);
  }
  args.operands = operands.data();
  args.operand_count = operands.size();
  HEDDLE_ASSIGN(int64_t workspaceBytes, kernel.workspaceBytes(args));
  HEDDLE_ASSIGN(tensors.workspace, DeviceBuffer::allocate(device, std::max<int64_t>(workspaceBytes, 1)));
  args.workspace = tensors.workspace.data();
  args.workspace_bytes = workspaceBytes;
  HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
  HEDDLE_ASSIGN(double us, medianUs(device, launch, std::max<int64_t>(1, arguments.number("reps"))));
  HEDDLE_TRY(tensors.out.copyTo(out.data.data(), out.data.size()));
  HEDDLE_TRY(tensors.lse.copyTo(lse.data.data(), lse.data.size()));
  HEDDLE_TRY(writeAttentionOutputs(arguments.text("output"), out, lse));
  std::printf("{\"match\": \"%s\", \"median_us\": %.3f, \"registers\": %lld}\n", matchKindName(found.match), us,
              static_cast<long long>(found.record.registers));
  return {};
}

} // namespace

int main(int argc, char **argv) {
  Status status = run(Arguments(argc, argv));
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "heddle-launch: error: %s\n", status.message().c_str());
  return status.code() == StatusCode::invalidArgument ? 1 : 3;
}
