//===- HostLaunch.cpp - a whole kernel run on the host ----------------------===//
#include "support/Places.h"
#include "support/HostLaunch.h"

#include "runtime/Device/OwnZeros.h"

#include "tests/unit/host_gpu/HostTensorMap.h"

#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

namespace heddle::test {
namespace {

/// Blocks of a cluster, as the text says before the name of an entry.
std::string clusterOf(const std::string &text, const std::string &entry) {
  constexpr std::string_view kSays = "__cluster_dims__(";
  const size_t name = text.find(" " + entry + "("), before = text.rfind("__launch_bounds__", name);
  const size_t said = text.find(kSays, before);
  return said < name ? text.substr(said + kSays.size(), 1) : "1";
}

/// Behind the text: its entries by name.
std::string launcherOf(const std::string &kernels, const LaunchPlan &plan) {
  std::string text =
      "\nextern \"C\" __attribute__((visibility(\"default\"))) void host_launch(const char *entry, const "
      "void *params, const unsigned (&grid)[3], unsigned threads, unsigned order) {\n";
  std::set<std::string> entries;
  for (const KernelLaunch &launch : plan.launches)
    entries.insert(launch.entry);
  for (const std::string &entry : entries)
    text += "  if (!std::strcmp(entry, \"" + entry + "\")) return host_gpu::launch(" + entry +
            ", params, grid, threads, " + clusterOf(kernels, entry) + ", host_gpu::BlockOrder(order));\n";
  return text + "  std::abort();\n}\n";
}

int64_t numberOf(const LaunchExpr &expr, const LaunchSymbols &symbols) {
  const Result<int64_t> value = expr.evaluate(symbols);
  if (!value)
    throw std::runtime_error(value.status().message());
  return *value;
}

/// The memory that a plan asks for.
struct Workspace {
  Workspace(const LaunchPlan &plan, const HostCall &call) : call(call) {
    const Result<WorkspaceLayout> placed = evaluateWorkspace(plan, call.symbols);
    if (!placed)
      throw std::runtime_error(placed.status().message());
    layout = *placed;
    bytes.assign(size_t(layout.totalBytes) + 256, std::byte(0xff));
    base = bytes.data() + (256 - reinterpret_cast<uintptr_t>(bytes.data()) % 256);
  }
  std::byte *address(const PointerSource &source) const {
    if (source.kind == PointerSource::Kind::region)
      return base + layout.offset[source.index];
    return static_cast<std::byte *>(const_cast<void *>(call.address(source)));
  }

  const HostCall &call;
  WorkspaceLayout layout;
  std::vector<std::byte> bytes;
  std::byte *base;
};

void clear(const ClearSpec &spec, const Workspace &workspace) {
  const LaunchSymbols &symbols = workspace.call.symbols;
  std::byte *to = workspace.address(spec.target) + numberOf(spec.offset, symbols);
  for (int64_t word = numberOf(spec.words, symbols); word-- > 0;)
    std::memcpy(to + 4 * word, &spec.value, 4);
}

/// What a launch was given as zero, and leaves so.
void checkLeftZero(const LaunchPlan &plan, const ClearSpec &spec, const Workspace &workspace) {
  if (spec.target.kind != PointerSource::Kind::region)
    return;
  const std::string &name = plan.regions[size_t(spec.target.index)].name;
  if (name.compare(0, kLeftZero.size(), kLeftZero) != 0)
    return;
  const LaunchSymbols &symbols = workspace.call.symbols;
  const std::byte *from = workspace.address(spec.target) + numberOf(spec.offset, symbols);
  for (int64_t byte = 4 * numberOf(spec.words, symbols); byte-- > 0;)
    if (from[byte] != std::byte(0))
      throw std::runtime_error(name + " is not zero behind the launch, at byte " + std::to_string(byte));
}

template <class T> void store(std::byte *slot, T value) { std::memcpy(slot, &value, sizeof value); }

host_gpu::HostTensorMap tensorMapOf(const TensorMapSpec &spec, const Workspace &workspace) {
  const LaunchSymbols &symbols = workspace.call.symbols;
  if (!spec.elementStride.empty() || (spec.swizzleBytes != 0 && spec.swizzleBytes != 128))
    throw std::runtime_error("a tensor map that the host does not know");
  host_gpu::HostTensorMap map = {};
  map.base =
      reinterpret_cast<const unsigned char *>(workspace.address(spec.source)) + numberOf(spec.offsetBytes, symbols);
  map.elementBytes = int32_t(dtypeBytes(spec.dtype));
  map.swizzleBytes = spec.swizzleBytes;
  map.isTf32 = spec.isTf32;
  for (size_t d = 0; d < size_t(map.kRank); ++d) {
    map.dims[d] = d < spec.dims.size() ? int32_t(numberOf(spec.dims[d], symbols)) : 1;
    map.box[d] = d < spec.box.size() ? int32_t(numberOf(spec.box[d], symbols)) : 1;
    map.strideBytes[d] = d == 0                         ? map.elementBytes
                         : d <= spec.strideBytes.size() ? numberOf(spec.strideBytes[d - 1], symbols)
                                                        : 0;
  }
  return map;
}

void fillSlot(const KernelLaunch &launch, const SlotSpec &spec, const Workspace &workspace, std::byte *slot) {
  const HostCall &call = workspace.call;
  switch (spec.kind) {
  case SlotSpec::Kind::f32:
    return store(slot, call.scaleLog2);
  case SlotSpec::Kind::i32:
    return store(slot, int32_t(numberOf(spec.expr, call.symbols)));
  case SlotSpec::Kind::i64:
    return store(slot, numberOf(spec.expr, call.symbols));
  case SlotSpec::Kind::ptr: {
    std::byte *base = workspace.address(spec.pointer);
    return store(slot, base ? base + numberOf(spec.expr, call.symbols) : base);
  }
  case SlotSpec::Kind::tensorMap:
    return store(slot, tensorMapOf(launch.tensorMaps[size_t(spec.tensorMap)], workspace));
  }
}

HostText sourceOf(const std::string &text, const LaunchPlan &plan) {
  HostText source;
  source.text = "#include \"HostGpu.h\"\n" + text + launcherOf(text, plan);
  source.flags = "-w -I" + test::places().hostGpu;
  source.libraries = "-lboost_context";
  return source;
}

} // namespace

HostKernel::HostKernel(const std::string &text, LaunchPlan given)
    : planned(std::move(given)), library(sourceOf(text, planned)) {
  if (const Status valid = planned.validate(); !valid.isOk())
    throw std::runtime_error(valid.message());
  library.find("host_launch", launch);
}

void HostKernel::run(const HostCall &call, BlockOrder order) const {
  const Workspace workspace(planned, call);
  for (const KernelLaunch &each : planned.launches) {
    for (const ClearSpec &spec : each.clears)
      clear(spec, workspace);
    const Result<LaunchGeometry> geometry = evaluateGeometry(each, call.symbols);
    if (!geometry)
      throw std::runtime_error(geometry.status().message());
    std::vector<std::byte> params(static_cast<size_t>(each.paramBytes));
    for (const SlotSpec &spec : each.slots)
      fillSlot(each, spec, workspace, params.data() + spec.offset);
    const unsigned grid[] = {unsigned(geometry->grid[0]), unsigned(geometry->grid[1]), unsigned(geometry->grid[2])};
    if (!geometry->isEmpty())
      launch(each.entry.c_str(), params.data(), grid, unsigned(geometry->block), unsigned(order));
    for (const ClearSpec &spec : each.clears)
      checkLeftZero(planned, spec, workspace);
  }
}

} // namespace heddle::test
