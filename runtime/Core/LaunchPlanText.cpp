//===- LaunchPlanText.cpp - the stored text of a launch plan ----------------===//
// One item per line, tokens separated by one space, expressions without spaces:
//   heddle-plan 1 | entry NAME | grid X Y Z | block T | shared B | workspace B | params B | key_origin_step N
//   clear TARGET OFFSET WORDS VALUE
//   tensor_map SOURCE DTYPE offset B swizzle S dims ... strides ... box ... step ...
//   slot OFFSET i32|i64 EXPR, slot OFFSET f32 scale_log2, slot OFFSET ptr SOURCE, slot OFFSET tensor_map I
#include "runtime/Core/LaunchPlan.h"

#include <charconv>

namespace heddle {
namespace {

constexpr const char *kHeader = "heddle-plan 1";
constexpr const char *kSlotKinds[] = {"i32", "i64", "f32", "ptr", "tensor_map"};

void printList(std::string &text, const char *name, const std::vector<LaunchExpr> &list) {
  if (list.empty())
    return;
  text += std::string(" ") + name;
  for (const LaunchExpr &expr : list)
    text += " " + expr.str();
}

std::string printMap(const TensorMapSpec &map) {
  std::string text = "tensor_map " + map.source.str() + " " + dtypeName(map.dtype) + " offset " + map.offsetBytes.str() +
                     " swizzle " + std::to_string(map.swizzleBytes);
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
  case SlotSpec::Kind::i64: return text + slot.expr.str() + "\n";
  case SlotSpec::Kind::f32: return text + "scale_log2\n";
  case SlotSpec::Kind::ptr: return text + slot.pointer.str() + "\n";
  case SlotSpec::Kind::tensorMap: return text + std::to_string(slot.tensorMap) + "\n";
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

  // The next token; empty at the end of the line.
  std::string_view word() {
    std::string_view token = peek();
    rest.remove_prefix(std::min(rest.size(), token.size() + 1));
    return token;
  }

  Status expectWord(const char *expected) {
    std::string_view got = word();
    return got == expected ? Status() : fail(std::string("expected '") + expected + "', got '" + std::string(got) + "'");
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
    return line.fail("expected bf16, fp16 or fp32, got '" + std::string(dtypeText) + "'");
  map.dtype = *dtype;
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
  case SlotSpec::Kind::i64: return line.read(slot.expr);
  case SlotSpec::Kind::f32: return line.expectWord("scale_log2");
  case SlotSpec::Kind::ptr: return line.read(slot.pointer);
  case SlotSpec::Kind::tensorMap: return line.read(slot.tensorMap);
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

Status parseLine(LineReader &line, LaunchPlan &plan) {
  std::string_view key = line.word();
  if (key == "entry") {
    plan.entry = std::string(line.word());
  } else if (key == "grid") {
    for (LaunchExpr &expr : plan.grid)
      HEDDLE_TRY(line.read(expr));
  } else if (key == "block") {
    HEDDLE_TRY(line.read(plan.block));
  } else if (key == "shared") {
    HEDDLE_TRY(line.read(plan.sharedBytes));
  } else if (key == "workspace") {
    HEDDLE_TRY(line.read(plan.workspaceBytes));
  } else if (key == "params") {
    HEDDLE_TRY(line.read(plan.paramBytes));
  } else if (key == "key_origin_step") {
    HEDDLE_TRY(line.read(plan.keyOriginStep));
  } else if (key == "clear") {
    HEDDLE_TRY(parseClear(line, plan.clears.emplace_back()));
  } else if (key == "tensor_map") {
    HEDDLE_TRY(parseMap(line, plan.tensorMaps.emplace_back()));
  } else if (key == "slot") {
    HEDDLE_TRY(parseSlot(line, plan.slots.emplace_back()));
  } else {
    return line.fail("expected entry, grid, block, shared, workspace, params, key_origin_step, clear, tensor_map or slot, got '" + std::string(key) + "'");
  }
  return line.atEnd() ? Status() : line.fail("expected the end of the line, got '" + std::string(line.word()) + "'");
}

} // namespace

std::string LaunchPlan::str() const {
  std::string text = std::string(kHeader) + "\nentry " + entry + "\n";
  text += "grid " + grid[0].str() + " " + grid[1].str() + " " + grid[2].str() + "\n";
  text += "block " + block.str() + "\nshared " + sharedBytes.str() + "\nworkspace " + workspaceBytes.str() + "\n";
  text += "params " + std::to_string(paramBytes) + "\n";
  if (keyOriginStep != 1)
    text += "key_origin_step " + std::to_string(keyOriginStep) + "\n";
  for (const ClearSpec &clear : clears)
    text += "clear " + clear.target.str() + " " + clear.offset.str() + " " + clear.words.str() + " " + std::to_string(clear.value) + "\n";
  for (const TensorMapSpec &map : tensorMaps)
    text += printMap(map);
  for (const SlotSpec &slot : slots)
    text += printSlot(slot);
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
    else if (content != kHeader)
      return line.fail(std::string("expected '") + kHeader + "', got '" + std::string(content) + "'");
  }
  HEDDLE_TRY(plan.validate());
  return plan;
}

} // namespace heddle
