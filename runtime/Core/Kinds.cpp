//===- Kinds.cpp - the tables of kinds --------------------------------------===//
#include "runtime/Core/Kinds.h"
#include "runtime/Core/KernelRecord.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace heddle {
namespace {

constexpr const char *kRuleNames[] = {"start", "end", "given"};
constexpr std::string_view kGradientsSuffix = "_of_";

// "0_3"; nothing if the text is anything else.
std::vector<int64_t> ascendingNumbers(std::string_view text) {
  std::vector<int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    int64_t number = -1;
    const auto [next, error] = std::from_chars(at, end, number);
    const bool isNext = error == std::errc() && number > (numbers.empty() ? -1 : numbers.back());
    if (!isNext || (next < end && (*next != '_' || next + 1 == end)))
      return {};
    numbers.push_back(number);
    at = next;
  }
  return numbers;
}

} // namespace

const std::vector<KindSpec> &kinds() {
  static const std::vector<KindSpec> list = {
#define HEDDLE_KIND_SPEC(identifier, name, ...) {#name, {__VA_ARGS__}},
      HEDDLE_KINDS(HEDDLE_KIND_SPEC)
#undef HEDDLE_KIND_SPEC
  };
  return list;
}

std::vector<std::string> kindNames() {
  std::vector<std::string> names;
  for (const KindSpec &kind : kinds())
    names.emplace_back(kind.name);
  return names;
}

const KindRole *KindSpec::find(Role role) const {
  const auto found =
      std::find_if(roles.begin(), roles.end(), [&](const KindRole &known) { return known.role == role; });
  return found == roles.end() ? nullptr : &*found;
}

bool KindSpec::isDeterministic() const {
  return std::string_view(name).find("_deterministic") != std::string_view::npos;
}

int64_t KindSpec::flopsOfPair(int64_t headDim, int64_t valueDim) const {
  if (!find(Role::q))
    return 0;
  return 2 * (isBackward() ? 3 * headDim + 2 * valueDim : headDim + valueDim);
}

std::string KindText::str() const {
  std::string text = name;
  for (size_t i = 0; i < gradientsOf.size(); ++i)
    text += (i ? "_" : std::string(kGradientsSuffix)) + std::to_string(gradientsOf[i]);
  return outFloat32 ? text.append(KernelFamily::kFloatOutSuffix) : text;
}

KindText KindText::parse(std::string_view text) {
  constexpr std::string_view ofOut = KernelFamily::kFloatOutSuffix;
  KindText kind;
  kind.outFloat32 = text.size() > ofOut.size() && text.substr(text.size() - ofOut.size()) == ofOut;
  if (kind.outFloat32)
    text.remove_suffix(ofOut.size());
  if (const size_t at = text.rfind(kGradientsSuffix); at != std::string_view::npos)
    kind.gradientsOf = ascendingNumbers(text.substr(at + kGradientsSuffix.size()));
  kind.name = text.substr(0, kind.gradientsOf.empty() ? text.size() : text.rfind(kGradientsSuffix));
  return kind;
}

Result<const KindSpec *> findKind(std::string_view kind) {
  const KindText text = KindText::parse(kind);
  std::string names;
  for (const KindSpec &known : kinds()) {
    if (text.name == known.name && (text.gradientsOf.empty() || known.isBackward()))
      return &known;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return Status::unsupported("no kind '" + std::string(kind) + "'; there is " + names);
}

const char *qOriginRuleName(QOriginRule rule) { return kRuleNames[int(rule)]; }

Result<QOriginRule> parseQOriginRule(std::string_view name) {
  for (size_t i = 0; i < std::size(kRuleNames); ++i)
    if (name == kRuleNames[i])
      return QOriginRule(i);
  return Status::notFound("no q_origin rule '" + std::string(name) + "'; there is start, end, given");
}

} // namespace heddle
