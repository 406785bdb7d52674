#include "runtime/Core/LaunchExpr.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <optional>

namespace heddle {
namespace {

using Op = LaunchExpr::Op;

constexpr const char *kOtherNames[] = {"q_origin",   "k_origin", "sm_count",  "round_first",
                                       "round_rows", "lse_rows", "carry_rows"};
static_assert(kSizeCount + std::size(kOtherNames) == size_t(LaunchSymbol::firstStride), "a name for each symbol");
constexpr const char *kStrideNames[kStrideDims] = {"_stride_batch", "_stride_row", "_stride_head"};

std::array<std::string, kLaunchSymbolCount> allSymbolNames() {
  std::array<std::string, kLaunchSymbolCount> names;
  for (const SizeSpec &size : kSizes)
    names[size_t(symbolOf(size.size))] = size.name;
  std::copy(std::begin(kOtherNames), std::end(kOtherNames), names.begin() + kSizeCount);
  for (const RoleSpec &role : kRoles)
    for (int dim = 0; dim < kStrideDims; ++dim)
      names[size_t(strideOf(role.role, StrideDim(dim)))] = std::string(role.name) + kStrideNames[dim];
  return names;
}

struct OpInfo {
  Op op;
  const char *name;
  int operands;
};
constexpr OpInfo kOps[] = {{Op::add, "add", 2},           {Op::sub, "sub", 2},         {Op::mul, "mul", 2},
                           {Op::floordiv, "floordiv", 2}, {Op::ceildiv, "ceildiv", 2}, {Op::mod, "mod", 2},
                           {Op::min, "min", 2},           {Op::max, "max", 2}};

const OpInfo *findOp(Op op) {
  for (const OpInfo &info : kOps)
    if (info.op == op)
      return &info;
  return nullptr;
}

// Deeper text is refused, so that evaluation of stored plans has a bounded stack.
constexpr int kMaxDepth = 64;

// Overflow and a zero divisor give nothing.
std::optional<int64_t> combine(Op op, int64_t a, int64_t b) {
  int64_t value = 0;
  switch (op) {
  case Op::add:
    return __builtin_add_overflow(a, b, &value) ? std::nullopt : std::optional(value);
  case Op::sub:
    return __builtin_sub_overflow(a, b, &value) ? std::nullopt : std::optional(value);
  case Op::mul:
    return __builtin_mul_overflow(a, b, &value) ? std::nullopt : std::optional(value);
  case Op::min:
    return std::min(a, b);
  case Op::max:
    return std::max(a, b);
  default:
    break;
  }
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  int64_t quotient = a / b, remainder = a % b;
  bool isNegative = (remainder < 0) != (b < 0);
  switch (op) {
  case Op::floordiv:
    return quotient - (remainder != 0 && isNegative ? 1 : 0);
  case Op::ceildiv:
    return quotient + (remainder != 0 && !isNegative ? 1 : 0);
  case Op::mod:
    return remainder != 0 && isNegative ? remainder + b : remainder;
  default:
    return std::nullopt;
  }
}

} // namespace

const std::string &launchSymbolName(LaunchSymbol symbol) {
  static const std::array<std::string, kLaunchSymbolCount> names = allSymbolNames();
  return names[size_t(symbol)];
}

LaunchExpr LaunchExpr::param(int64_t index) { return LaunchExpr(Op::param, index); }

LaunchExpr LaunchExpr::apply(Op op, std::vector<LaunchExpr> operands) {
  assert(findOp(op) && findOp(op)->operands == int(operands.size()) && "operator with the wrong number of operands");
  LaunchExpr result(op, 0);
  for (const LaunchExpr &operand : operands)
    result.nodes.insert(result.nodes.end(), operand.nodes.begin(), operand.nodes.end());
  result.nodes[0].size = uint32_t(result.nodes.size());
  return result;
}

LaunchExpr LaunchExpr::replacedAt(size_t at, LaunchSymbol symbol, const LaunchExpr &by) const {
  const Node &node = nodes[at];
  if (node.op == Op::symbol && node.value == int64_t(symbol))
    return by;
  std::vector<LaunchExpr> operands;
  for (size_t next = at + 1; next < at + node.size; next += nodes[next].size)
    operands.push_back(replacedAt(next, symbol, by));
  return operands.empty() ? LaunchExpr(node.op, node.value) : apply(node.op, std::move(operands));
}

Result<int64_t> LaunchExpr::evaluate(const LaunchSymbols &symbols) const {
  int64_t value = 0;
  HEDDLE_TRY(evaluateAt(0, symbols, value));
  return value;
}

Status LaunchExpr::evaluateAt(size_t at, const LaunchSymbols &symbols, int64_t &value) const {
  const Node &node = nodes[at];
  switch (node.op) {
  case Op::constant:
    value = node.value;
    return {};
  case Op::symbol:
    value = symbols.values[node.value];
    return {};
  case Op::param:
    if (node.value >= symbols.paramCount)
      return Status::invalidArgument("launch expression: param" + std::to_string(node.value) + " is not given, " +
                                     std::to_string(symbols.paramCount) + " run-time sizes are");
    value = symbols.params[node.value];
    return {};
  default:
    break;
  }
  size_t second = at + 1 + nodes[at + 1].size;
  int64_t a = 0, b = 0;
  HEDDLE_TRY(evaluateAt(at + 1, symbols, a));
  HEDDLE_TRY(evaluateAt(second, symbols, b));
  std::optional<int64_t> combined = combine(node.op, a, b);
  if (combined) {
    value = *combined;
    return {};
  }
  std::string text;
  print(at, text);
  const bool isDivision = node.op == Op::floordiv || node.op == Op::ceildiv || node.op == Op::mod;
  char why[96];
  std::snprintf(why, sizeof why, " %s for operands %lld and %lld",
                isDivision && b == 0 ? "divides by zero" : "overflows 64 bits", (long long)a, (long long)b);
  return Status::invalidArgument("launch expression: " + text + why);
}

int64_t LaunchExpr::paramCount() const {
  int64_t count = 0;
  for (const Node &node : nodes)
    if (node.op == Op::param)
      count = std::max(count, node.value + 1);
  return count;
}

void LaunchExpr::markParams(std::vector<bool> &used) const {
  for (const Node &node : nodes)
    if (node.op == Op::param)
      used[size_t(node.value)] = true;
}

uint64_t LaunchExpr::paramMask() const {
  static_assert(kMaxArguments <= 64, "a bit for each argument");
  uint64_t mask = 0;
  for (const Node &node : nodes)
    if (node.op == Op::param && node.value < kMaxArguments)
      mask |= uint64_t(1) << node.value;
  return mask;
}

bool LaunchExpr::operator==(const LaunchExpr &other) const {
  return std::equal(
      nodes.begin(), nodes.end(), other.nodes.begin(), other.nodes.end(),
      [](const Node &a, const Node &b) { return a.op == b.op && a.size == b.size && a.value == b.value; });
}

void LaunchExpr::print(size_t at, std::string &text) const {
  const Node &node = nodes[at];
  if (node.op == Op::constant) {
    text += std::to_string(node.value);
  } else if (node.op == Op::symbol) {
    text += launchSymbolName(LaunchSymbol(node.value));
  } else if (node.op == Op::param) {
    text += "param" + std::to_string(node.value);
  } else {
    text += findOp(node.op)->name;
    size_t end = at + node.size;
    for (size_t operand = at + 1; operand < end; operand += nodes[operand].size) {
      text += operand == at + 1 ? '(' : ',';
      print(operand, text);
    }
    text += ')';
  }
}

std::string LaunchExpr::str() const {
  std::string text;
  print(0, text);
  return text;
}

// Recursive descent over name, name(expr,...) and integers; spaces are not part of the notation.
class LaunchExprParser {
public:
  explicit LaunchExprParser(std::string_view text) : text(text) {}

  Result<LaunchExpr> parseWhole() {
    HEDDLE_ASSIGN(LaunchExpr expr, parseExpr(0));
    if (at != text.size())
      return fail("expected the end of the expression");
    return expr;
  }

private:
  Status fail(const std::string &expected) const {
    std::string got = at < text.size() ? "'" + std::string(1, text[at]) + "'" : "the end";
    return Status::invalidArgument("launch expression, column " + std::to_string(at + 1) + ": " + expected + ", got " +
                                   got);
  }

  Result<LaunchExpr> parseExpr(int depth) {
    if (depth > kMaxDepth)
      return fail("expected at most " + std::to_string(kMaxDepth) + " nested operators");
    size_t start = at;
    while (at < text.size() &&
           (text[at] == '_' || text[at] == '-' || std::isalnum(static_cast<unsigned char>(text[at]))))
      ++at;
    std::string_view word = text.substr(start, at - start);
    Result<LaunchExpr> leaf = parseLeaf(word);
    if (leaf)
      return leaf;
    for (const OpInfo &info : kOps)
      if (word == info.name)
        return parseOperands(info, depth);
    at = start;
    return fail("expected an integer, a symbol, param<i> or an operator");
  }

  Result<LaunchExpr> parseLeaf(std::string_view word) const {
    for (int i = 0; i < kLaunchSymbolCount; ++i)
      if (word == launchSymbolName(LaunchSymbol(i)))
        return LaunchExpr(LaunchSymbol(i));
    bool isParam = word.substr(0, 5) == "param" && word.substr(0, 6) != "param-";
    std::string_view digits = isParam ? word.substr(5) : word;
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || (isParam && value >= kMaxArguments))
      return Status::invalidArgument("not a leaf");
    return isParam ? LaunchExpr::param(value) : LaunchExpr(value);
  }

  Result<LaunchExpr> parseOperands(const OpInfo &info, int depth) {
    std::vector<LaunchExpr> operands;
    for (int i = 0; i < info.operands; ++i) {
      char separator = i == 0 ? '(' : ',';
      if (at >= text.size() || text[at] != separator)
        return fail(std::string("expected '") + separator + "' (" + info.name + " takes " +
                    std::to_string(info.operands) + " operands)");
      ++at;
      HEDDLE_ASSIGN(LaunchExpr operand, parseExpr(depth + 1));
      operands.push_back(std::move(operand));
    }
    if (at >= text.size() || text[at] != ')')
      return fail(std::string("expected ')' (") + info.name + " takes " + std::to_string(info.operands) + " operands)");
    ++at;
    return LaunchExpr::apply(info.op, std::move(operands));
  }

  std::string_view text;
  size_t at = 0;
};

Result<LaunchExpr> LaunchExpr::parse(std::string_view text) { return LaunchExprParser(text).parseWhole(); }

LaunchExpr operator+(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::add, {a, b}); }
LaunchExpr operator-(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::sub, {a, b}); }
LaunchExpr operator*(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::mul, {a, b}); }
LaunchExpr floorDiv(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::floordiv, {a, b}); }
LaunchExpr ceilDiv(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::ceildiv, {a, b}); }
LaunchExpr mod(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::mod, {a, b}); }
LaunchExpr min(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::min, {a, b}); }
LaunchExpr max(const LaunchExpr &a, const LaunchExpr &b) { return LaunchExpr::apply(Op::max, {a, b}); }

} // namespace heddle
