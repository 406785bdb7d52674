//===- Kinds.cpp - the tables of kinds --------------------------------------===//
#include "runtime/Core/Kinds.h"
#include "runtime/Core/KernelRecord.h"

#include <algorithm>
#include <iterator>

namespace heddle {
namespace {

constexpr const char *kRuleNames[] = {"start", "end", "given"};

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

int64_t KindSpec::flopsOfPair(int64_t headDim, int64_t valueDim) const {
  if (!find(Role::q))
    return 0;
  return 2 * (isBackward() ? 3 * headDim + 2 * valueDim : headDim + valueDim);
}

Result<const KindSpec *> findKind(std::string_view kind) {
  constexpr std::string_view suffix = KernelFamily::kFloatOutSuffix;
  if (kind.size() > suffix.size() && kind.substr(kind.size() - suffix.size()) == suffix)
    kind.remove_suffix(suffix.size());
  std::string names;
  for (const KindSpec &known : kinds()) {
    if (kind == known.name)
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
