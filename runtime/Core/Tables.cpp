//===- Tables.cpp -----------------------------------------------------------===//
#include "runtime/Core/Tables.h"
#include "runtime/Core/CallChecks.h"

#include <iterator>

namespace heddle {
namespace {

// Names are words of this project, which need no escapes.
std::string quoted(const std::string &name) { return '"' + name + '"'; }

std::string field(const char *name, const std::string &value) { return quoted(name) + ": " + value; }

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
         '}';
}

std::vector<LaunchSymbol> extentsOf(const RoleSpec &role) {
  const LaunchSymbol rows = symbolOf(role.rows), heads = symbolOf(role.heads);
  if (role.dim == RoleExtent::one)
    return {LaunchSymbol::batch, heads, rows};
  return {LaunchSymbol::batch, rows, heads, symbolOf(role.dim)};
}

std::string roleText(const KindRole &known) {
  constexpr const char *forms[] = {"tensor", "array"}, *elements[] = {"dtype", "out_dtype", "fp32"};
  constexpr const char *accesses[] = {"", "read", "write", "both"}, *presences[] = {"required", "together", "optional"};
  const RoleSpec role = specOf(known);
  return '{' + field("name", quoted(role.name)) + ", " + field("form", quoted(forms[int(role.form)])) + ", " +
         field("element", quoted(elements[int(role.element)])) + ", " +
         field("extents", listOf(extentsOf(role), [](LaunchSymbol size) { return quoted(launchSymbolName(size)); })) +
         ", " + field("access", quoted(accesses[int(known.access)])) + ", " +
         field("presence", quoted(presences[int(known.presence)])) + '}';
}

std::string kindText(const KindSpec &kind) {
  return '{' + field("name", quoted(kind.name)) + ", " + field("roles", listOf(kind.roles, roleText)) + '}';
}

} // namespace

const std::string &tablesText() {
  static const std::string text =
      '{' + field("elements", listOf(kElements, elementText)) + ", " + field("kinds", listOf(kinds(), kindText)) + '}';
  return text;
}

} // namespace heddle
