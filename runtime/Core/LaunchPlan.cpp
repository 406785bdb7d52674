#include "runtime/Core/LaunchPlan.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace heddle {
namespace {

using PointerKind = PointerSource::Kind;

constexpr int64_t kRegionAlignment = 256;
constexpr int64_t kMaxWorkspaceBytes = int64_t(1) << 40;

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
  for (const WorkspaceRegion &region : plan.regions)
    f(region.bytes);
  f(plan.roundRows);
  for (const KernelLaunch &launch : plan.launches)
    forEachExprOf(launch, f);
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
    return Status::invalidArgument(name + "one element stride per dimension, got " +
                                   std::to_string(map.elementStride.size()));
  if (map.swizzleBytes != 0 && map.swizzleBytes != 32 && map.swizzleBytes != 64 && map.swizzleBytes != 128)
    return Status::invalidArgument(name + "swizzle 0, 32, 64 or 128 bytes, got " + std::to_string(map.swizzleBytes));
  if (map.isTf32 && map.dtype != DType::fp32)
    return Status::invalidArgument(name + "fp32 to be made tf32 of, got " + dtypeName(map.dtype));
  return {};
}

Status validateSlot(const KernelLaunch &launch, const SlotSpec &slot) {
  std::string name = "launch plan: slot at offset " + std::to_string(slot.offset) + ": expected ";
  if (slot.offset < 0 || slot.offset % slot.alignment() != 0)
    return Status::invalidArgument(name + "a multiple of " + std::to_string(slot.alignment()));
  if (slot.offset > launch.paramBytes - slot.bytes())
    return Status::invalidArgument(name + "to end inside the " + std::to_string(launch.paramBytes) +
                                   " parameter bytes");
  if (slot.kind == SlotSpec::Kind::tensorMap &&
      (slot.tensorMap < 0 || size_t(slot.tensorMap) >= launch.tensorMaps.size()))
    return Status::invalidArgument(name + "one of " + std::to_string(launch.tensorMaps.size()) +
                                   " tensor maps, got number " + std::to_string(slot.tensorMap));
  return {};
}

Status validateLaunch(const KernelLaunch &launch) {
  if (launch.entry.empty() || launch.entry.find_first_of(" \t\n") != std::string::npos)
    return Status::invalidArgument("launch plan: expected an entry name without spaces, got '" + launch.entry + "'");
  if (launch.paramBytes < 0 || launch.paramBytes > kMaxParamBytes)
    return Status::invalidArgument("launch plan: expected at most " + std::to_string(kMaxParamBytes) +
                                   " parameter bytes, got " + std::to_string(launch.paramBytes));
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

Status validateRegions(const LaunchPlan &plan) {
  const std::string who = "launch plan: ";
  if (plan.regions.size() > size_t(kMaxRegions))
    return Status::invalidArgument(who + "expected at most " + std::to_string(kMaxRegions) + " regions, got " +
                                   std::to_string(plan.regions.size()));
  for (const WorkspaceRegion &region : plan.regions)
    if (region.name.empty() || region.name.find_first_of(" \t\n") != std::string::npos || region.first < 0 ||
        region.last < region.first || region.last >= int64_t(plan.launches.size()))
      return Status::invalidArgument(who + "region '" + region.name +
                                     "': expected a name without spaces and a life within the " +
                                     std::to_string(plan.launches.size()) + " launches, got " +
                                     std::to_string(region.first) + " to " + std::to_string(region.last));
  return {};
}

Status validateService(const PlanService &serves) {
  if (serves.keyOriginStep < 0)
    return Status::invalidArgument("launch plan: expected a step of key origins of at least 0, got " +
                                   std::to_string(serves.keyOriginStep));
  if (!serves.kind)
    return Status::invalidArgument("launch plan: expected the kind of calls that it serves");
  for (Role role : serves.roles)
    if (!serves.kind->find(role))
      return Status::invalidArgument("launch plan: kind " + serves.kind->name() + " has no role " + specOf(role).name);
  return {};
}

// Launch `index` uses what the plan says that it serves, and regions while they live.
Status validatePointers(const LaunchPlan &plan, size_t index) {
  Status status;
  plan.launches[index].forEachPointer([&](const PointerSource &source) {
    const bool isRegion = source.kind == PointerKind::region;
    const bool isKnownRegion = isRegion && size_t(source.index) < plan.regions.size();
    const bool lives = isKnownRegion && plan.regions[size_t(source.index)].first <= int64_t(index) &&
                       plan.regions[size_t(source.index)].last >= int64_t(index);
    const bool isServed = source.kind != PointerKind::role || plan.serves.has(Role(source.index));
    if (status.isOk() && ((isRegion && !lives) || !isServed))
      status = Status::invalidArgument("launch plan: launch " + std::to_string(index) + " uses " + source.str() +
                                       (isServed ? ", which does not live then" : ", which the plan does not serve"));
  });
  return status;
}

Result<PointerSource> parseNumbered(std::string_view text) {
  const struct {
    std::string_view name;
    PointerSource (*make)(int64_t);
    int64_t most;
  } forms[] = {{"operand", PointerSource::operand, kMaxArguments},
               {"region", PointerSource::region, kMaxRegions},
               {"gradient", PointerSource::gradient, kMaxArguments}};
  for (const auto &form : forms) {
    if (text.substr(0, form.name.size()) != form.name)
      continue;
    const std::string_view digits = text.substr(form.name.size());
    int64_t index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < form.most)
      return form.make(index);
  }
  return Status::invalidArgument("");
}

} // namespace

std::string PointerSource::str() const {
  switch (kind) {
  case Kind::role:
    return kRoles[index].name;
  case Kind::operand:
    return "operand" + std::to_string(index);
  case Kind::gradient:
    return "gradient" + std::to_string(index);
  case Kind::region:
    break;
  }
  return "region" + std::to_string(index);
}

Result<PointerSource> PointerSource::parse(std::string_view text) {
  std::string names;
  for (const RoleSpec &role : kRoles) {
    if (text == role.name)
      return PointerSource(role.role);
    names += std::string(role.name) + ", ";
  }
  if (Result<PointerSource> numbered = parseNumbered(text))
    return numbered;
  return Status::invalidArgument("expected " + names + "operand<i>, region<i> or gradient<i>, got '" +
                                 std::string(text) + "'");
}

PlanService::PlanService(Kind served) : kind(std::move(served)) {
  kind->gradientsOf.clear();
  for (const KindRole &known : kind->roles())
    roles.push_back(known.role);
}

PointerSource LaunchPlan::appendRegion(std::string name, LaunchExpr bytes, int64_t first, int64_t last) {
  regions.push_back({std::move(name), std::move(bytes), first, last});
  return PointerSource::region(int64_t(regions.size()) - 1);
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
  const bool isLarge = std::any_of(launches.begin(), launches.end(),
                                   [](const KernelLaunch &launch) { return launch.paramBytes > kSmallParamBytes; });
  return isLarge ? kLargeParamDriver : 0;
}

int64_t LaunchPlan::paramCount() const {
  int64_t count = 0;
  forEachExpr(*this, [&](const LaunchExpr &expr) { count = std::max(count, expr.paramCount()); });
  for (const ArgumentBound &bound : serves.bounds)
    for (const LaunchExpr *expr : {&bound.value, &bound.least, &bound.most})
      count = std::max(count, expr->paramCount());
  return count;
}

std::vector<bool> LaunchPlan::usedParams() const {
  std::vector<bool> used(size_t(paramCount()), false);
  forEachExpr(*this, [&](const LaunchExpr &expr) { expr.markParams(used); });
  return used;
}

Status LaunchPlan::validate() const {
  if (launches.empty() || launches.size() > size_t(kMaxLaunches))
    return Status::invalidArgument("launch plan: expected 1 to " + std::to_string(kMaxLaunches) + " launches, got " +
                                   std::to_string(launches.size()));
  HEDDLE_TRY(validateRegions(*this));
  if (paramCount() > kMaxArguments)
    return Status::invalidArgument("launch plan: expected param0 to param" + std::to_string(kMaxArguments - 1) +
                                   ", got param" + std::to_string(paramCount() - 1));
  int64_t allBytes = 0;
  for (const KernelLaunch &launch : launches) {
    HEDDLE_TRY(validateLaunch(launch));
    allBytes += roundUp(launch.paramBytes, kParamAlignment);
  }
  if (allBytes > kMaxParamBytes)
    return Status::invalidArgument("launch plan: expected at most " + std::to_string(kMaxParamBytes) +
                                   " parameter bytes of all launches, got " + std::to_string(allBytes));
  HEDDLE_TRY(validateService(serves));
  for (size_t i = 0; i < launches.size(); ++i)
    HEDDLE_TRY(validatePointers(*this, i));
  return {};
}

namespace {

Status tooLarge(const std::string &what, int64_t value, int64_t most) {
  return Status::unsupported("launch: " + what + " = " + std::to_string(value) + " is outside 0 to " +
                             std::to_string(most) + "; use fewer batches, heads or rows per call");
}

bool meets(const WorkspaceRegion &a, const WorkspaceRegion &b) { return a.first <= b.last && b.first <= a.last; }

// Behind a region before `index` that region `index` would collide with at its offset; nothing if there is none.
std::optional<int64_t> behindCollision(const LaunchPlan &plan, const WorkspaceLayout &layout, size_t index) {
  for (size_t i = 0; i < index; ++i) {
    const int64_t end = layout.offset[i] + layout.bytes[i];
    const bool overlaps = layout.offset[i] < layout.offset[index] + layout.bytes[index] && layout.offset[index] < end;
    if (overlaps && meets(plan.regions[i], plan.regions[index]))
      return roundUp(end, kRegionAlignment);
  }
  return std::nullopt;
}

} // namespace

Result<WorkspaceLayout> evaluateWorkspace(const LaunchPlan &plan, const LaunchSymbols &symbols) {
  WorkspaceLayout layout;
  for (size_t i = 0; i < plan.regions.size(); ++i) {
    HEDDLE_ASSIGN(layout.bytes[i], plan.regions[i].bytes.evaluate(symbols));
    if (layout.bytes[i] < 0 || layout.bytes[i] > kMaxWorkspaceBytes)
      return tooLarge("workspace bytes of " + plan.regions[i].name, layout.bytes[i], kMaxWorkspaceBytes);
    while (const std::optional<int64_t> next = behindCollision(plan, layout, i))
      layout.offset[i] = *next;
    layout.totalBytes = std::max(layout.totalBytes, layout.offset[i] + layout.bytes[i]);
  }
  if (layout.totalBytes > kMaxWorkspaceBytes)
    return tooLarge("workspace bytes", layout.totalBytes, kMaxWorkspaceBytes);
  return layout;
}

Result<LaunchGeometry> evaluateGeometry(const KernelLaunch &launch, const LaunchSymbols &symbols) {
  struct Item {
    const char *name;
    const LaunchExpr *expr;
    int64_t most;
    int64_t *value;
  };
  LaunchGeometry geometry;
  const Item items[] = {{"grid x", &launch.grid[0], INT32_MAX, &geometry.grid[0]},
                        {"grid y", &launch.grid[1], 65535, &geometry.grid[1]},
                        {"grid z", &launch.grid[2], 65535, &geometry.grid[2]},
                        {"block", &launch.block, 1024, &geometry.block},
                        {"shared bytes", &launch.sharedBytes, 1 << 20, &geometry.sharedBytes}};
  for (const Item &item : items) {
    HEDDLE_ASSIGN(*item.value, item.expr->evaluate(symbols));
    if (*item.value < 0 || *item.value > item.most)
      return tooLarge(item.name, *item.value, item.most);
  }
  return geometry;
}

} // namespace heddle
