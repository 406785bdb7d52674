#include "runtime/Core/Tables.h"
#include "runtime/Core/CallChecks.h"

namespace heddle {
namespace {

// Names are words of this project, which need no escapes.
std::string quoted(const std::string &name) { return '"' + name + '"'; }

std::string field(const char *name, const std::string &value) { return quoted(name) + ": " + value; }

std::string truth(bool value) { return value ? "true" : "false"; }

template <class List, class Text> std::string listOf(const List &list, Text textOf) {
  std::string text;
  for (const auto &entry : list)
    text += (text.empty() ? "" : ", ") + textOf(entry);
  return '[' + text + ']';
}

std::string elementText(const ElementTraits &element) {
  return '{' + field("name", quoted(element.name)) + ", " + field("mlir", quoted(element.mlirName)) + ", " +
         field("torch", quoted(element.torchName)) + ", " + field("number", std::to_string(element.code)) + ", " +
         field("bytes", std::to_string(element.bytes)) + ", " + field("dlpack", std::to_string(element.dlpackCode)) +
         ", " + field("out", quoted(dtypeName(CallElements::outOf(element.dtype)))) + '}';
}

std::string sizeText(const SizeSpec &size) {
  return '{' + field("name", quoted(size.name)) + ", " + field("unsaid", std::to_string(size.unsaid)) + ", " +
         field("is_field", truth(size.isField)) + '}';
}

std::vector<LaunchSymbol> symbolsOf(const RoleSpec &role) {
  std::vector<LaunchSymbol> symbols;
  for (RoleExtent extent : extentsOf(role))
    symbols.push_back(symbolOf(extent));
  return symbols;
}

std::string roleText(const KindRole &known) {
  constexpr const char *forms[] = {"tensor", "array", "offsets"},
                       *elements[] = {"q", "k", "v", "out", "fp32", "i32", "e4m3"};
  constexpr const char *accesses[] = {"", "read", "write", "both"},
                       *presences[] = {"required", "together", "optional", "scale"};
  const RoleSpec role = specOf(known);
  return '{' + field("name", quoted(role.name)) + ", " + field("form", quoted(forms[int(role.form)])) + ", " +
         field("element", quoted(elements[int(role.element)])) + ", " +
         field("extents", listOf(symbolsOf(role), [](LaunchSymbol size) { return quoted(launchSymbolName(size)); })) +
         ", " + field("access", quoted(accesses[int(known.access)])) + ", " +
         field("presence", quoted(presences[int(known.presence)])) + '}';
}

std::string kindText(const Kind &kind) {
  constexpr const char *adds[] = {"none", "keys", "all"};
  return '{' + field("name", quoted(kind.name())) + ", " + field("base", quoted(Kind{kind.base}.name())) + ", " +
         field("adds", quoted(adds[int(kind.adds)])) + ", " + field("is_deterministic", truth(kind.isDeterministic)) +
         ", " + field("roles", listOf(kind.roles(), roleText)) + '}';
}

// What the texts of kinds end in: KindText.
std::string suffixesText() {
  const std::string kind = Kind{KindBase::backward}.str(),
                    ofZero = Kind{KindBase::backward, Adds::none, false, {0}}.str();
  const std::string gradients = ofZero.substr(kind.size(), ofZero.size() - kind.size() - 1);
  const std::string floatOut = KindText{{KindBase::backward}, true}.str().substr(kind.size());
  const std::string tf32 = KindText{{KindBase::backward}, false, Precision::tf32}.str().substr(kind.size());
  return '{' + field("gradients_of", quoted(gradients)) + ", " + field("fp32_out", quoted(floatOut)) + ", " +
         field("tf32", quoted(tf32)) + '}';
}

} // namespace

const std::string &tablesText() {
  static const std::string text =
      '{' + field("elements", listOf(kElements, elementText)) + ", " + field("sizes", listOf(kSizes, sizeText)) + ", " +
      field("kinds", listOf(Kind::all(), kindText)) + ", " + field("kind_suffixes", suffixesText()) + '}';
  return text;
}

} // namespace heddle
