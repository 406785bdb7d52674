// One item per line, tokens separated by one space, expressions without spaces:
//   heddle-plan 3 | kind NAME | roles NAME ... | q_origin RULE | key_origin_step N | round_rows EXPR
//   bound ARGUMENT VALUE LEAST MOST [UNIT[, REASON]], of heddle-plan 4: the rest of the line may hold spaces
//   region NAME BYTES FIRST LAST
//   launch ENTRY: what follows describes this kernel, until the next one
//   grid X Y Z | block T | shared B | params B | clear TARGET OFFSET WORDS VALUE
//   tensor_map SOURCE DTYPE offset B swizzle S dims ... strides ... box ... step ...
//   slot OFFSET i32|i64 EXPR, slot OFFSET f32 scale_log2, slot OFFSET ptr SOURCE [BYTES], slot OFFSET tensor_map I
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace heddle {
namespace {

constexpr const char *kHeader = "heddle-plan 3", *kHeaderWithBounds = "heddle-plan 4";
constexpr const char *kSlotKinds[] = {"i32", "i64", "f32", "ptr", "tensor_map"};

void printList(std::string &text, const char *name, const std::vector<LaunchExpr> &list) {
  if (list.empty())
    return;
  text += std::string(" ") + name;
  for (const LaunchExpr &expr : list)
    text += " " + expr.str();
}

std::string printMap(const TensorMapSpec &map) {
  std::string text = "tensor_map " + map.source.str() + " " + dtypeName(map.dtype) + (map.isTf32 ? " tf32" : "") +
                     " offset " + map.offsetBytes.str() + " swizzle " + std::to_string(map.swizzleBytes);
  printList(text, "dims", map.dims);
  printList(text, "strides", map.strideBytes);
  printList(text, "box", map.box);
  printList(text, "step", map.elementStride);
  return text + "\n";
}

std::string printSlot(const SlotSpec &slot) {
  std::string text = "slot " + std::to_string(slot.offset) + " " + kSlotKinds[int(slot.kind)] + " ";
  switch (slot.kind) {
  case SlotSpec::Kind::i32:
  case SlotSpec::Kind::i64:
    return text + slot.expr.str() + "\n";
  case SlotSpec::Kind::f32:
    return text + "scale_log2\n";
  case SlotSpec::Kind::ptr:
    return text + slot.pointer.str() + (slot.expr == LaunchExpr() ? "" : " " + slot.expr.str()) + "\n";
  case SlotSpec::Kind::tensorMap:
    return text + std::to_string(slot.tensorMap) + "\n";
  }
  return text;
}

// Reads the tokens of one line; failures carry the line number.
class LineReader {
public:
  LineReader(std::string_view line, int number) : rest(line), number(number) {}

  Status fail(const std::string &what) const {
    return Status::invalidArgument("launch plan, line " + std::to_string(number) + ": " + what);
  }

  bool atEnd() const { return rest.empty(); }

  std::string_view peek() const { return rest.substr(0, rest.find(' ')); }

  // All that is left.
  std::string_view remaining() { return std::exchange(rest, std::string_view()); }

  // The next token; empty at the end of the line.
  std::string_view word() {
    std::string_view token = peek();
    rest.remove_prefix(std::min(rest.size(), token.size() + 1));
    return token;
  }

  Status expectWord(const char *expected) {
    std::string_view got = word();
    return got == expected ? Status()
                           : fail(std::string("expected '") + expected + "', got '" + std::string(got) + "'");
  }

  Status read(int64_t &value) {
    std::string_view token = word();
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size())
      return fail("expected an integer, got '" + std::string(token) + "'");
    return {};
  }

  Status read(LaunchExpr &expr) {
    Result<LaunchExpr> parsed = LaunchExpr::parse(word());
    if (!parsed)
      return fail(parsed.status().message());
    expr = parsed.take();
    return {};
  }

  Status read(PointerSource &source) {
    Result<PointerSource> parsed = PointerSource::parse(word());
    if (!parsed)
      return fail(parsed.status().message());
    source = *parsed;
    return {};
  }

  // `name` and then expressions up to the next list name; a list that is not there stays empty.
  Status readList(const char *name, std::vector<LaunchExpr> &list) {
    if (peek() != name)
      return {};
    word();
    while (!atEnd() && peek() != "strides" && peek() != "box" && peek() != "step")
      HEDDLE_TRY(read(list.emplace_back()));
    return {};
  }

private:
  std::string_view rest;
  int number;
};

Status parseMap(LineReader &line, TensorMapSpec &map) {
  HEDDLE_TRY(line.read(map.source));
  std::string_view dtypeText = line.word();
  std::optional<DType> dtype = parseDType(dtypeText);
  if (!dtype)
    return line.fail("expected " + elementList(&ElementTraits::isOfCalls) + ", got '" + std::string(dtypeText) + "'");
  map.dtype = *dtype;
  if (line.peek() == "tf32")
    map.isTf32 = !line.word().empty();
  HEDDLE_TRY(line.expectWord("offset"));
  HEDDLE_TRY(line.read(map.offsetBytes));
  HEDDLE_TRY(line.expectWord("swizzle"));
  int64_t swizzle = 0;
  HEDDLE_TRY(line.read(swizzle));
  map.swizzleBytes = swizzle >= 0 && swizzle <= 128 ? int(swizzle) : -1;
  HEDDLE_TRY(line.readList("dims", map.dims));
  HEDDLE_TRY(line.readList("strides", map.strideBytes));
  HEDDLE_TRY(line.readList("box", map.box));
  return line.readList("step", map.elementStride);
}

Status parseSlot(LineReader &line, SlotSpec &slot) {
  HEDDLE_TRY(line.read(slot.offset));
  std::string_view kind = line.word();
  int index = 0;
  while (index < 5 && kind != kSlotKinds[index])
    ++index;
  if (index == 5)
    return line.fail("expected a slot kind i32, i64, f32, ptr or tensor_map, got '" + std::string(kind) + "'");
  slot.kind = SlotSpec::Kind(index);
  switch (slot.kind) {
  case SlotSpec::Kind::i32:
  case SlotSpec::Kind::i64:
    return line.read(slot.expr);
  case SlotSpec::Kind::f32:
    return line.expectWord("scale_log2");
  case SlotSpec::Kind::ptr:
    HEDDLE_TRY(line.read(slot.pointer));
    return line.atEnd() ? Status() : line.read(slot.expr);
  case SlotSpec::Kind::tensorMap:
    return line.read(slot.tensorMap);
  }
  return {};
}

Status parseClear(LineReader &line, ClearSpec &clear) {
  HEDDLE_TRY(line.read(clear.target));
  HEDDLE_TRY(line.read(clear.offset));
  HEDDLE_TRY(line.read(clear.words));
  int64_t value = 0;
  HEDDLE_TRY(line.read(value));
  if (value < 0 || value > int64_t(UINT32_MAX))
    return line.fail("expected a clear value of 32 bits, got " + std::to_string(value));
  clear.value = uint32_t(value);
  return {};
}

Status parseRoles(LineReader &line, std::vector<Role> &roles) {
  roles.clear();
  while (!line.atEnd()) {
    PointerSource source;
    HEDDLE_TRY(line.read(source));
    if (source.kind != PointerSource::Kind::role)
      return line.fail("expected a role, got '" + source.str() + "'");
    roles.push_back(Role(source.index));
  }
  return {};
}

Status parseOrigin(LineReader &line, QOriginRule &rule) {
  Result<QOriginRule> parsed = parseQOriginRule(line.word());
  if (!parsed)
    return line.fail(parsed.status().message());
  rule = *parsed;
  return {};
}

Status parseRegion(LineReader &line, WorkspaceRegion &region) {
  region.name = std::string(line.word());
  HEDDLE_TRY(line.read(region.bytes));
  HEDDLE_TRY(line.read(region.first));
  return line.read(region.last);
}

constexpr std::string_view kReasonSign = ", ";

Status parseBound(LineReader &line, ArgumentBound &bound) {
  HEDDLE_TRY(line.read(bound.argument));
  HEDDLE_TRY(line.read(bound.value));
  HEDDLE_TRY(line.read(bound.least));
  HEDDLE_TRY(line.read(bound.most));
  const std::string_view words = line.remaining();
  const size_t unitEnd = std::min(words.find(kReasonSign), words.size());
  bound.unit = std::string(words.substr(0, unitEnd));
  bound.reason = std::string(words.substr(std::min(unitEnd + kReasonSign.size(), words.size())));
  return {};
}

std::string printBound(const ArgumentBound &bound) {
  const std::string words = bound.unit + (bound.reason.empty() ? "" : std::string(kReasonSign) + bound.reason);
  return "bound " + std::to_string(bound.argument) + " " + bound.value.str() + " " + bound.least.str() + " " +
         bound.most.str() + (words.empty() ? "" : " " + words) + "\n";
}

Status parseKind(LineReader &line, std::optional<Kind> &kind) {
  HEDDLE_ASSIGN(kind, Kind::parse(line.word()));
  return {};
}

Status parsePlanLine(std::string_view key, LineReader &line, LaunchPlan &plan) {
  if (key == "kind")
    HEDDLE_TRY(parseKind(line, plan.serves.kind));
  else if (key == "roles")
    HEDDLE_TRY(parseRoles(line, plan.serves.roles));
  else if (key == "q_origin")
    HEDDLE_TRY(parseOrigin(line, plan.serves.qOrigin));
  else if (key == "key_origin_step")
    HEDDLE_TRY(line.read(plan.serves.keyOriginStep));
  else if (key == "bound")
    HEDDLE_TRY(parseBound(line, plan.serves.bounds.emplace_back()));
  else if (key == "round_rows")
    HEDDLE_TRY(line.read(plan.roundRows));
  else if (key == "region")
    HEDDLE_TRY(parseRegion(line, plan.regions.emplace_back()));
  else
    return line.fail("expected kind, roles, q_origin, key_origin_step, bound, round_rows, region or launch, got '" +
                     std::string(key) + "'");
  return {};
}

Status parseLaunchLine(std::string_view key, LineReader &line, KernelLaunch &launch) {
  if (key == "grid") {
    for (LaunchExpr &expr : launch.grid)
      HEDDLE_TRY(line.read(expr));
  } else if (key == "block") {
    HEDDLE_TRY(line.read(launch.block));
  } else if (key == "shared") {
    HEDDLE_TRY(line.read(launch.sharedBytes));
  } else if (key == "params") {
    HEDDLE_TRY(line.read(launch.paramBytes));
  } else if (key == "clear") {
    HEDDLE_TRY(parseClear(line, launch.clears.emplace_back()));
  } else if (key == "tensor_map") {
    HEDDLE_TRY(parseMap(line, launch.tensorMaps.emplace_back()));
  } else if (key == "slot") {
    HEDDLE_TRY(parseSlot(line, launch.slots.emplace_back()));
  } else {
    return line.fail("expected grid, block, shared, params, clear, tensor_map, slot or launch, got '" +
                     std::string(key) + "'");
  }
  return {};
}

Status parseLine(LineReader &line, LaunchPlan &plan) {
  const std::string_view key = line.word();
  if (key == "launch" && plan.launches.size() == size_t(kMaxLaunches))
    return line.fail("expected at most " + std::to_string(kMaxLaunches) + " launches");
  if (key == "launch")
    plan.launches.emplace_back().entry = std::string(line.word());
  else
    HEDDLE_TRY(plan.launches.empty() ? parsePlanLine(key, line, plan)
                                     : parseLaunchLine(key, line, plan.launches.back()));
  return line.atEnd() ? Status() : line.fail("expected the end of the line, got '" + std::string(line.word()) + "'");
}

std::string printService(const PlanService &serves) {
  std::string text = "kind " + serves.kind->name() + "\nroles";
  for (Role role : serves.roles)
    text += std::string(" ") + specOf(role).name;
  text += std::string("\nq_origin ") + qOriginRuleName(serves.qOrigin) + "\nkey_origin_step " +
          std::to_string(serves.keyOriginStep) + "\n";
  for (const ArgumentBound &bound : serves.bounds)
    text += printBound(bound);
  return text;
}

std::string printLaunch(const KernelLaunch &launch) {
  std::string text = "launch " + launch.entry + "\ngrid " + launch.grid[0].str() + " " + launch.grid[1].str() + " " +
                     launch.grid[2].str() + "\nblock " + launch.block.str() + "\nshared " + launch.sharedBytes.str() +
                     "\nparams " + std::to_string(launch.paramBytes) + "\n";
  for (const ClearSpec &clear : launch.clears)
    text += "clear " + clear.target.str() + " " + clear.offset.str() + " " + clear.words.str() + " " +
            std::to_string(clear.value) + "\n";
  for (const TensorMapSpec &map : launch.tensorMaps)
    text += printMap(map);
  for (const SlotSpec &slot : launch.slots)
    text += printSlot(slot);
  return text;
}

} // namespace

std::string LaunchPlan::str() const {
  std::string text = std::string(serves.bounds.empty() ? kHeader : kHeaderWithBounds) + "\n" + printService(serves) +
                     "round_rows " + roundRows.str() + "\n";
  for (const WorkspaceRegion &region : regions)
    text += "region " + region.name + " " + region.bytes.str() + " " + std::to_string(region.first) + " " +
            std::to_string(region.last) + "\n";
  for (const KernelLaunch &launch : launches)
    text += printLaunch(launch);
  return text;
}

Result<LaunchPlan> LaunchPlan::parse(std::string_view text) {
  LaunchPlan plan;
  for (int number = 1; !text.empty() || number == 1; ++number) {
    std::string_view content = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), content.size() + 1));
    LineReader line(content, number);
    if (number > 1)
      HEDDLE_TRY(parseLine(line, plan));
    else if (content != kHeader && content != kHeaderWithBounds)
      return line.fail(std::string("expected '") + kHeader + "' or '" + kHeaderWithBounds + "', got '" +
                       std::string(content) + "'");
  }
  HEDDLE_TRY(plan.validate());
  return plan;
}

} // namespace heddle
