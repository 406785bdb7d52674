//===- launch.cpp - a stored kernel, launched without a compiler ----------===//
// Looks a pattern up by name in a kernel database (--db) and shipped ones under it (--shipped-db, else
// $HEDDLE_SHIPPED_DB, separated by colons), launches it on seeded random inputs and writes the results. The tensors
// that the pattern reads come from a file, under their numbers. Prints one JSON line: how the lookup matched, the
// median time, registers. `heddle bench` checks the results in its own process (compiler/Measure/LauncherProcess).
//===----------------------------------------------------------------------===//
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Safetensors.h"
#include "runtime/Device/Kernel.h"
#include "runtime/Store/StoreStack.h"

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
  /// "NUMBER:WORD,...".
  std::vector<std::pair<int32_t, int64_t>> numbered(const std::string &name) const {
    std::vector<std::pair<int32_t, int64_t>> result;
    std::stringstream stream(text(name));
    for (std::string item; std::getline(stream, item, ',');)
      result.emplace_back(std::atoi(item.c_str()), std::atoll(item.substr(item.find(':') + 1).c_str()));
    return result;
  }

private:
  std::map<std::string, std::string> values;
};

Result<DeviceBuffer> upload(const Device &device, const std::vector<std::byte> &data) {
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, std::max<size_t>(data.size(), 1)));
  HEDDLE_TRY(buffer.copyFrom(data.data(), data.size()));
  return buffer;
}

// One call, with what its kernel reads and writes in device memory.
class Call {
public:
  static Result<Call> create(const Arguments &arguments, const Device &device, const AttentionInputs &inputs) {
    Call call(*inputs.kind, emptyResultsOf(*inputs.kind, inputs.sizes, inputs.dtype(), inputs.dtype()));
    for (const RoleSpec &role : rolesOf(call.kind, Access::read)) {
      const HostTensor &tensor = inputs.of(role.role);
      HEDDLE_ASSIGN(DeviceBuffer buffer, upload(device, tensor.data));
      call.bind(role.role, tensor, std::move(buffer));
    }
    for (const RoleSpec &role : rolesOf(call.kind, Access::write)) {
      const HostTensor &tensor = call.results.of(role.role);
      HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, tensor.data.size()));
      HEDDLE_TRY(buffer.fillBytes(0xff)); // NaN: what is not written shows
      call.written.push_back({role.role, call.tensors.size()});
      call.bind(role.role, tensor, std::move(buffer));
    }
    call.args.q_origin = arguments.number("q-origin");
    call.args.k_origin = arguments.number("k-origin");
    HEDDLE_TRY(call.bindOperands(arguments, device));
    return call;
  }

  // The workspace is that of this kernel from now on.
  Result<PreparedLaunch> prepare(const Device &device, const Kernel &kernel) {
    args.operands = operands.data();
    args.operand_count = operands.size();
    HEDDLE_ASSIGN(int64_t bytes, kernel.workspaceBytes(args));
    HEDDLE_ASSIGN(workspace, DeviceBuffer::allocate(device, std::max<int64_t>(bytes, 1)));
    args.workspace = workspace.data();
    args.workspace_bytes = bytes;
    return kernel.prepare(args);
  }

  Status writeResults(const std::string &path) {
    for (auto [role, number] : written)
      HEDDLE_TRY(tensors[number].copyTo(results.of(role).data.data(), results.of(role).data.size()));
    return writeAttentionOutputs(path, results, kind);
  }

private:
  Call(const KindSpec &kind, RoleTensors results) : kind(kind), results(std::move(results)) {}

  void bind(Role role, const HostTensor &tensor, DeviceBuffer buffer) {
    bindRole(args, role, buffer.data(), tensor.dtype, tensor.shape);
    tensors.push_back(std::move(buffer));
  }

  Status bindOperands(const Arguments &arguments, const Device &device) {
    for (auto [number, word] : arguments.numbered("sizes")) {
      operands.push_back({number, HEDDLE_OPERAND_INT, {}});
      operands.back().value.i64 = word;
    }
    if (arguments.text("operands").empty())
      return {};
    HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(arguments.text("operands")));
    for (const auto &[number, entry] : file.entries()) {
      HEDDLE_ASSIGN(OperandTensor tensor, file.readOperand(number));
      HEDDLE_ASSIGN(DeviceBuffer buffer, upload(device, *tensor.data));
      operands.push_back({std::atoi(number.c_str()), HEDDLE_OPERAND_POINTER, {}});
      operands.back().value.ptr = buffer.data();
      tensors.push_back(std::move(buffer));
    }
    return {};
  }

  const KindSpec &kind;
  RoleTensors results;
  std::vector<DeviceBuffer> tensors;
  std::vector<std::pair<Role, size_t>> written; // where their tensors are
  DeviceBuffer workspace;
  std::vector<heddle_operand> operands;
  AttentionArgs args = makeAttentionArgs();
};

std::vector<std::string> shippedPaths(const Arguments &arguments) {
  const char *named = std::getenv("HEDDLE_SHIPPED_DB");
  const std::string given = arguments.text("shipped-db");
  return splitPaths(!given.empty() || !named ? given : named);
}

// The one of --db may be missing if there are others.
Result<StoreStack> openStores(const Arguments &arguments) {
  StoreStack stores;
  const std::vector<std::string> shipped = shippedPaths(arguments);
  Result<Store> own = Store::open(arguments.text("db"));
  if (own)
    stores.add(own.take());
  else if (shipped.empty() || own.status().code() != StatusCode::notFound)
    return own.status();
  for (const std::string &path : shipped) {
    HEDDLE_ASSIGN(Store store, openShipped(path));
    stores.add(std::move(store));
  }
  return stores;
}

Result<StackLookup> findKernel(const Arguments &arguments, const StoreStack &stores, const Device &device,
                               const AttentionInputs &inputs, const AttentionSizes &sizes) {
  HEDDLE_ASSIGN(NameRecord name, stores.findName(arguments.text("name")));
  KernelFamily family;
  family.pattern = name.pattern;
  family.kind = inputs.kind->name;
  family.dtype = inputs.dtype();
  family.headDim = sizes.headDim;
  family.valueDim = sizes.valueDim;
  const DeviceInfo &info = device.info();
  ProblemBucket bucket =
      ProblemBucket::of(arguments.number("work-items"), info.identity.smCount, arguments.number("visited-tiles"),
                        sizes.heads / sizes.kvHeads, sizes.seqlenQ);
  ExactProblem problem{sizes.batch, sizes.heads, sizes.kvHeads, sizes.seqlenQ, sizes.seqlenK};
  return stores.lookup(LookupQuery(WinnerKey(family, bucket, info.identity, std::move(problem)), info.driverVersion));
}

Result<double> medianUs(const Device &device, const PreparedLaunch &launch, int64_t repetitions) {
  HEDDLE_ASSIGN(DeviceBuffer flush,
                DeviceBuffer::allocate(device, std::max<int64_t>(device.info().l2Bytes * 4, 1 << 20)));
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
  HEDDLE_ASSIGN(StoreStack stores, openStores(arguments));
  HEDDLE_ASSIGN(Device device, Device::open());
  std::optional<DType> parsed = parseDType(arguments.text("dtype"));
  if (!parsed)
    return Status::invalidArgument("expected --dtype=bf16 or fp16, got '" + arguments.text("dtype") + "'");
  HEDDLE_ASSIGN(const KindSpec *kind, findKind(arguments.text("kind")));
  AttentionSizes sizes{arguments.number("batch"),
                       arguments.number("seqlen"),
                       arguments.number("seqlen-k"),
                       arguments.number("heads"),
                       arguments.number("kv-heads"),
                       arguments.number("head-dim"),
                       arguments.number("value-dim") ? arguments.number("value-dim") : arguments.number("head-dim")};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, *parsed, arguments.number("seed"), *kind));
  HEDDLE_ASSIGN(StackLookup found, findKernel(arguments, stores, device, inputs, sizes));
  if (found.match == MatchKind::none)
    return Status::notFound("no kernel for '" + arguments.text("name") + "' in " + stores.paths());
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, found.record));
  HEDDLE_ASSIGN(Call call, Call::create(arguments, device, inputs));
  HEDDLE_ASSIGN(PreparedLaunch launch, call.prepare(device, kernel));
  HEDDLE_ASSIGN(double us, medianUs(device, launch, std::max<int64_t>(1, arguments.number("reps"))));
  HEDDLE_TRY(call.writeResults(arguments.text("output")));
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
