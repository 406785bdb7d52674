//===- LaunchPlan.cpp - building, checking and evaluating -------------------===//
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>
#include <charconv>

namespace heddle {
namespace {

using PointerKind = PointerSource::Kind;

constexpr const char *kPointerNames[] = {"q", "k", "v", "out", "lse", "carry_out", "carry_lse", "workspace"};
constexpr int64_t kMaxOperands = 1024;

int64_t roundUp(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

template <class F> void forEachExprOf(const KernelLaunch &launch, F &f) {
  for (const LaunchExpr &expr : launch.grid)
    f(expr);
  f(launch.block);
  f(launch.sharedBytes);
  for (const ClearSpec &clear : launch.clears) {
    f(clear.offset);
    f(clear.words);
  }
  for (const TensorMapSpec &map : launch.tensorMaps) {
    f(map.offsetBytes);
    for (const std::vector<LaunchExpr> *list : {&map.dims, &map.strideBytes, &map.box, &map.elementStride})
      for (const LaunchExpr &expr : *list)
        f(expr);
  }
  for (const SlotSpec &slot : launch.slots)
    f(slot.expr);
}

// Calls f on every expression of the plan.
template <class F> void forEachExpr(const LaunchPlan &plan, F &&f) {
  f(plan.workspaceBytes);
  f(plan.roundRows);
  for (size_t i = 0; i < plan.launchCount(); ++i)
    forEachExprOf(plan.launch(i), f);
}

Status validateMap(const TensorMapSpec &map, size_t index) {
  std::string name = "launch plan: tensor map " + std::to_string(index) + ": expected ";
  size_t rank = map.dims.size();
  if (rank < 1 || rank > 5)
    return Status::invalidArgument(name + "rank 1 to 5, got " + std::to_string(rank));
  if (map.strideBytes.size() != rank - 1)
    return Status::invalidArgument(name + "rank - 1 strides, got " + std::to_string(map.strideBytes.size()));
  if (map.box.size() != rank)
    return Status::invalidArgument(name + "one box size per dimension, got " + std::to_string(map.box.size()));
  if (!map.elementStride.empty() && map.elementStride.size() != rank)
    return Status::invalidArgument(name + "one element stride per dimension, got " + std::to_string(map.elementStride.size()));
  if (map.swizzleBytes != 0 && map.swizzleBytes != 32 && map.swizzleBytes != 64 && map.swizzleBytes != 128)
    return Status::invalidArgument(name + "swizzle 0, 32, 64 or 128 bytes, got " + std::to_string(map.swizzleBytes));
  return {};
}

Status validateSlot(const KernelLaunch &launch, const SlotSpec &slot) {
  std::string name = "launch plan: slot at offset " + std::to_string(slot.offset) + ": expected ";
  if (slot.offset < 0 || slot.offset % slot.alignment() != 0)
    return Status::invalidArgument(name + "a multiple of " + std::to_string(slot.alignment()));
  if (slot.offset > launch.paramBytes - slot.bytes())
    return Status::invalidArgument(name + "to end inside the " + std::to_string(launch.paramBytes) + " parameter bytes");
  if (slot.kind == SlotSpec::Kind::tensorMap && (slot.tensorMap < 0 || size_t(slot.tensorMap) >= launch.tensorMaps.size()))
    return Status::invalidArgument(name + "one of " + std::to_string(launch.tensorMaps.size()) + " tensor maps, got number " +
                                   std::to_string(slot.tensorMap));
  return {};
}

Status validateLaunch(const KernelLaunch &launch) {
  if (launch.entry.empty() || launch.entry.find_first_of(" \t\n") != std::string::npos)
    return Status::invalidArgument("launch plan: expected an entry name without spaces, got '" + launch.entry + "'");
  if (launch.paramBytes < 0 || launch.paramBytes > kMaxParamBytes)
    return Status::invalidArgument("launch plan: expected at most " + std::to_string(kMaxParamBytes) + " parameter bytes, got " +
                                   std::to_string(launch.paramBytes));
  for (size_t i = 0; i < launch.tensorMaps.size(); ++i)
    HEDDLE_TRY(validateMap(launch.tensorMaps[i], i));
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const SlotSpec &slot : launch.slots) {
    HEDDLE_TRY(validateSlot(launch, slot));
    spans.push_back({slot.offset, slot.offset + slot.bytes()});
  }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second)
      return Status::invalidArgument("launch plan: slots at offsets " + std::to_string(spans[i - 1].first) + " and " +
                                     std::to_string(spans[i].first) + " overlap");
  return {};
}

} // namespace

std::string PointerSource::str() const {
  return kind == Kind::operand ? "operand" + std::to_string(index) : kPointerNames[int(kind)];
}

Result<PointerSource> PointerSource::parse(std::string_view text) {
  for (int i = 0; i < int(PointerKind::operand); ++i)
    if (text == kPointerNames[i])
      return PointerSource{PointerKind(i), 0};
  if (text.substr(0, 7) == "operand") {
    int64_t index = -1;
    auto [end, error] = std::from_chars(text.data() + 7, text.data() + text.size(), index);
    if (error == std::errc() && end == text.data() + text.size() && index >= 0 && index < kMaxOperands)
      return PointerSource{PointerKind::operand, index};
  }
  return Status::invalidArgument("expected q, k, v, out, lse, carry_out, carry_lse, workspace or operand<i>, got '" +
                                 std::string(text) + "'");
}

int64_t SlotSpec::bytes() const {
  return kind == Kind::tensorMap ? 128 : kind == Kind::i32 || kind == Kind::f32 ? 4 : 8;
}

int64_t SlotSpec::alignment() const { return kind == Kind::tensorMap ? 64 : bytes(); }

int64_t KernelLaunch::append(SlotSpec slot) {
  int64_t end = 0, alignment = slot.alignment();
  for (const SlotSpec &other : slots) {
    end = std::max(end, other.offset + other.bytes());
    alignment = std::max(alignment, other.alignment());
  }
  slot.offset = roundUp(end, slot.alignment());
  paramBytes = roundUp(slot.offset + slot.bytes(), alignment);
  slots.push_back(std::move(slot));
  return slots.back().offset;
}

int64_t KernelLaunch::appendI32(LaunchExpr value) {
  SlotSpec slot;
  slot.expr = std::move(value);
  return append(std::move(slot));
}

int64_t KernelLaunch::appendI64(LaunchExpr value) {
  SlotSpec slot;
  slot.kind = SlotSpec::Kind::i64;
  slot.expr = std::move(value);
  return append(std::move(slot));
}

int64_t KernelLaunch::appendPointer(PointerSource source) {
  SlotSpec slot;
  slot.kind = SlotSpec::Kind::ptr;
  slot.pointer = source;
  return append(std::move(slot));
}

int64_t KernelLaunch::appendScaleLog2() {
  SlotSpec slot;
  slot.kind = SlotSpec::Kind::f32;
  return append(std::move(slot));
}

int64_t KernelLaunch::appendTensorMap(TensorMapSpec spec) {
  SlotSpec slot;
  slot.kind = SlotSpec::Kind::tensorMap;
  slot.tensorMap = int64_t(tensorMaps.size());
  tensorMaps.push_back(std::move(spec));
  return append(std::move(slot));
}

int64_t LaunchPlan::minDriver() const {
  int64_t least = 0;
  for (size_t i = 0; i < launchCount(); ++i)
    least = std::max(least, launch(i).paramBytes > kSmallParamBytes ? kLargeParamDriver : 0);
  return least;
}

int64_t LaunchPlan::paramCount() const {
  int64_t count = 0;
  forEachExpr(*this, [&](const LaunchExpr &expr) { count = std::max(count, expr.paramCount()); });
  return count;
}

std::vector<bool> LaunchPlan::usedParams() const {
  std::vector<bool> used(size_t(paramCount()), false);
  forEachExpr(*this, [&](const LaunchExpr &expr) { expr.markParams(used); });
  return used;
}

Status LaunchPlan::validate() const {
  if (keyOriginStep < 1)
    return Status::invalidArgument("launch plan: expected a step of key origins of at least 1, got " + std::to_string(keyOriginStep));
  if (launchCount() > size_t(kMaxLaunches))
    return Status::invalidArgument("launch plan: expected at most " + std::to_string(kMaxLaunches) + " launches, got " +
                                   std::to_string(launchCount()));
  int64_t allBytes = 0;
  for (size_t i = 0; i < launchCount(); ++i) {
    HEDDLE_TRY(validateLaunch(launch(i)));
    allBytes += roundUp(launch(i).paramBytes, kParamAlignment);
  }
  if (allBytes > kMaxParamBytes)
    return Status::invalidArgument("launch plan: expected at most " + std::to_string(kMaxParamBytes) + " parameter bytes of all launches, got " +
                                   std::to_string(allBytes));
  return {};
}

Result<LaunchGeometry> evaluateGeometry(const LaunchPlan &plan, const LaunchSymbols &symbols, size_t index) {
  struct Item {
    const char *name;
    const LaunchExpr *expr;
    int64_t most;
    int64_t *value;
  };
  LaunchGeometry geometry;
  constexpr int64_t kMaxBytes = int64_t(1) << 40;
  const KernelLaunch &launch = plan.launch(index);
  const Item items[] = {{"grid x", &launch.grid[0], INT32_MAX, &geometry.grid[0]},
                        {"grid y", &launch.grid[1], 65535, &geometry.grid[1]},
                        {"grid z", &launch.grid[2], 65535, &geometry.grid[2]},
                        {"block", &launch.block, 1024, &geometry.block},
                        {"shared bytes", &launch.sharedBytes, 1 << 20, &geometry.sharedBytes},
                        {"workspace bytes", &plan.workspaceBytes, kMaxBytes, &geometry.workspaceBytes}};
  for (const Item &item : items) {
    HEDDLE_ASSIGN(*item.value, item.expr->evaluate(symbols));
    if (*item.value < 0 || *item.value > item.most)
      return Status::unsupported(std::string("launch: ") + item.name + " = " + std::to_string(*item.value) + " is outside 0 to " +
                                 std::to_string(item.most) + "; use fewer batches, heads or rows per call");
  }
  return geometry;
}

} // namespace heddle
