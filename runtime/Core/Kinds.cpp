#include "runtime/Core/Kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <tuple>

namespace heddle {
namespace {

constexpr const char *kRuleNames[] = {"start", "end", "given"};
constexpr const char *kBaseNames[] = {
#define HEDDLE_KIND_NAME(identifier, name, ...) #name,
    HEDDLE_KINDS(HEDDLE_KIND_NAME)
#undef HEDDLE_KIND_NAME
};
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

using RolesOfKinds = std::vector<std::vector<KindRole>>;

constexpr const char *kAddsNames[] = {"", "_accumulate_keys", "_accumulate"};

bool isAdded(const KindRole &known, Adds adds) {
  return includes(known.access, Access::write) && adds != Adds::none && (adds == Adds::all || known.role != Role::dQ);
}

// Calls that add to what they write read it, too.
RolesOfKinds addedTo(RolesOfKinds kinds, Adds adds) {
  for (std::vector<KindRole> &roles : kinds)
    for (KindRole &known : roles)
      known.access = isAdded(known, adds) ? Access::both : known.access;
  return kinds;
}

// With key-major values: what is written of v in e4m3, or v where nothing is.
RolesOfKinds keyMajor(RolesOfKinds kinds) {
  for (std::vector<KindRole> &roles : kinds) {
    const auto isOf = [&roles](Role role) {
      return std::find_if(roles.begin(), roles.end(), [role](const KindRole &known) { return known.role == role; });
    };
    auto values = isOf(Role::quantizedV);
    values = values == roles.end() ? isOf(Role::v) : values;
    if (values != roles.end() && values->rows == Rows::dense)
      values->rows = Rows::keyMajor;
  }
  return kinds;
}

} // namespace

const std::vector<Kind> &Kind::all() {
  static const std::vector<Kind> list = [] {
    std::vector<Kind> bases, kinds;
#define HEDDLE_ADD_KIND(identifier, ...) bases.push_back({KindBase::identifier});
    HEDDLE_KINDS(HEDDLE_ADD_KIND)
#undef HEDDLE_ADD_KIND
    for (const Kind &base : bases) {
      kinds.push_back(base);
      if (base.isBackward())
        for (const auto &[adds, isDeterministic] : {std::pair(Adds::all, false),
                                                    {Adds::keys, false},
                                                    {Adds::none, true},
                                                    {Adds::all, true},
                                                    {Adds::keys, true}})
          kinds.push_back({base.base, adds, isDeterministic});
      if (base.takesKeyMajorValues())
        kinds.push_back({base.base, Adds::none, false, {}, true});
    }
    return kinds;
  }();
  return list;
}

std::vector<std::string> kindNames() {
  std::vector<std::string> names;
  for (const Kind &kind : Kind::all())
    names.push_back(kind.name());
  return names;
}

const std::vector<KindRole> &Kind::roles() const {
  static const RolesOfKinds given = {
#define HEDDLE_KIND_ROLES(identifier, name, ...) {__VA_ARGS__},
      HEDDLE_KINDS(HEDDLE_KIND_ROLES)
#undef HEDDLE_KIND_ROLES
  };
  static const std::array ofAdds = {given, addedTo(given, Adds::keys), addedTo(given, Adds::all)};
  static const RolesOfKinds ofKeyMajor = keyMajor(given);
  return (hasKeyMajorValues ? ofKeyMajor : ofAdds[size_t(adds)])[size_t(base)];
}

bool Kind::addsTo(Role role) const {
  const KindRole *known = find(role);
  return known && known->access == Access::both;
}

const KindRole *Kind::find(Role role) const {
  for (const KindRole &known : roles())
    if (known.role == role)
      return &known;
  return nullptr;
}

bool Kind::hasSize(RoleExtent size) const {
  return std::any_of(roles().begin(), roles().end(), [size](const KindRole &known) {
    const RoleSpec role = specOf(known);
    return role.lead == size || role.rows == size || role.heads == size || role.dim == size;
  });
}

bool Kind::takesScaledKeys() const {
  const KindRole *scale = find(Role::descaleK);
  return scale && includes(scale->access, Access::read);
}

bool Kind::takesFromForward(Role role) const {
  const KindRole *forward = Kind().find(role), *own = find(role);
  return base != KindBase::forward && walksPattern() && own && includes(own->access, Access::read) && forward &&
         forward->access == Access::write;
}

bool Kind::takesFromForward() const {
  return std::any_of(roles().begin(), roles().end(),
                     [&](const KindRole &known) { return takesFromForward(known.role); });
}

int64_t Kind::flopsOfPair(int64_t headDim, int64_t valueDim) const {
  if (!walksPattern())
    return 0;
  return 2 * (isBackward() ? 3 * headDim + 2 * valueDim : headDim + valueDim);
}

bool operator==(const Kind &a, const Kind &b) {
  const auto parts = [](const Kind &kind) {
    return std::tie(kind.base, kind.adds, kind.isDeterministic, kind.gradientsOf, kind.hasKeyMajorValues);
  };
  return parts(a) == parts(b);
}

std::string Kind::name() const {
  return std::string(kBaseNames[int(base)]) + kAddsNames[size_t(adds)] + (isDeterministic ? "_deterministic" : "") +
         (hasKeyMajorValues ? "_v_key_major" : "");
}

std::string Kind::str() const {
  std::string text = name();
  for (size_t i = 0; i < gradientsOf.size(); ++i)
    text += (i ? "_" : std::string(kGradientsSuffix)) + std::to_string(gradientsOf[i]);
  return text;
}

Result<Kind> Kind::parse(std::string_view text) {
  const size_t at = text.rfind(kGradientsSuffix);
  const bool hasSuffix = at != std::string_view::npos;
  const std::vector<int64_t> arguments =
      hasSuffix ? ascendingNumbers(text.substr(at + kGradientsSuffix.size())) : std::vector<int64_t>();
  const std::string_view name = arguments.empty() ? text : text.substr(0, at);
  std::string names;
  for (Kind kind : all()) {
    if (kind.name() == name && (arguments.empty() || kind.isBackward())) {
      kind.gradientsOf = arguments;
      return kind;
    }
    names += (names.empty() ? "" : ", ") + kind.name();
  }
  return Status::unsupported("no kind '" + std::string(text) + "'; there is " + names);
}

const char *qOriginRuleName(QOriginRule rule) { return kRuleNames[int(rule)]; }

Result<QOriginRule> parseQOriginRule(std::string_view name) {
  for (size_t i = 0; i < std::size(kRuleNames); ++i)
    if (name == kRuleNames[i])
      return QOriginRule(i);
  return Status::notFound("no q_origin rule '" + std::string(name) + "'; there is start, end, given");
}

} // namespace heddle
