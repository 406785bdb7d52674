#include "runtime/Core/Tables.h"
#include "runtime/Core/CallChecks.h"

namespace heddle {
namespace {

// Names are words of this project, which need no escapes.
[[gnu::noinline]] std::string quoted(const char *name) {
  std::string text = "\"";
  text += name;
  text += '"';
  return text;
}

const char *truth(bool value) { return value ? "true" : "false"; }

// An object of JSON, field by field. Not inlined: there are many of them.
class Object {
public:
  [[gnu::noinline]] Object &field(const char *name, const std::string &value) {
    text += text.empty() ? "{" : ", ";
    text += quoted(name);
    text += ": ";
    text += value;
    return *this;
  }
  [[gnu::noinline]] Object &name(const char *name, const char *value) { return field(name, quoted(value)); }
  [[gnu::noinline]] Object &number(const char *name, int64_t value) { return field(name, std::to_string(value)); }
  [[gnu::noinline]] Object &is(const char *name, bool value) { return field(name, truth(value)); }
  [[gnu::noinline]] std::string end() { return text + '}'; }

private:
  std::string text;
};

template <class List, class Text> std::string listOf(const List &list, Text textOf) {
  std::string text = "[";
  for (const auto &entry : list) {
    if (text.size() > 1)
      text += ", ";
    text += textOf(entry);
  }
  text += ']';
  return text;
}

std::string elementText(const ElementTraits &element) {
  return Object()
      .name("name", element.name)
      .name("mlir", element.mlirName)
      .name("torch", element.torchName)
      .number("number", element.code)
      .number("bytes", element.bytes)
      .number("dlpack", element.dlpackCode)
      .name("out", dtypeName(CallElements::outOf(element.dtype)))
      .end();
}

std::string sizeText(const SizeSpec &size) {
  return Object().name("name", size.name).number("unsaid", size.unsaid).is("is_field", size.isField).end();
}

std::string roleText(const KindRole &known) {
  constexpr const char *forms[] = {"tensor", "array", "offsets"},
                       *elements[] = {"q", "k", "v", "out", "fp32", "i32", "e4m3", "fp32"};
  constexpr const char *accesses[] = {"", "read", "write", "both"},
                       *presences[] = {"required", "together", "optional", "scale", "part"};
  const RoleSpec role = specOf(known);
  const auto nameOf = [](RoleExtent size) { return quoted(launchSymbolName(symbolOf(size)).c_str()); };
  return Object()
      .name("name", role.name)
      .name("form", forms[int(role.form)])
      .name("element", elements[int(role.element)])
      .field("extents", listOf(extentsOf(role), nameOf))
      .name("access", accesses[int(known.access)])
      .name("presence", presences[int(known.presence)])
      .end();
}

std::string kindText(const Kind &kind) {
  constexpr const char *adds[] = {"none", "keys", "all"};
  return Object()
      .name("name", kind.name().c_str())
      .name("base", Kind{kind.base}.name().c_str())
      .name("adds", adds[int(kind.adds)])
      .is("is_deterministic", kind.isDeterministic)
      .is("is_key_major", kind.hasKeyMajorValues)
      .field("roles", listOf(kind.roles(), roleText))
      .end();
}

// What the texts of kinds end in: KindText.
std::string suffixesText() {
  const Kind kind = {KindBase::backward};
  const auto suffixOf = [before = kind.str().size()](const std::string &text) { return text.substr(before); };
  std::string gradients = suffixOf(Kind{KindBase::backward, Adds::none, false, {0}}.str());
  gradients.pop_back();
  Object outs, keys;
  for (const ElementTraits &element : kElements)
    if (element.isComputed()) {
      outs.name(element.name, suffixOf(KindText{kind, element.dtype}.str()).c_str());
      keys.name(element.name, suffixOf(KindText{kind, {}, element.dtype}.str()).c_str());
    }
  Object precisions;
  for (Precision precision : kPrecisions)
    if (precision != Precision::exact)
      precisions.field(precisionName(precision),
                       Object()
                           .name("of", dtypeName(elementOf(precision)))
                           .name("suffix", suffixOf(KindText{kind, {}, {}, precision}.str()).c_str())
                           .is("is_usual_without_lse", isUsualWithoutLse(precision))
                           .end());
  Object scales;
  for (int64_t rows : kScaleRows)
    scales.name(std::to_string(rows).c_str(), suffixOf(KindText{kind, {}, {}, {}, rows}.str()).c_str());
  return Object()
      .name("gradients_of", gradients.c_str())
      .field("out", outs.end())
      .field("keys", keys.end())
      .field("precision", precisions.end())
      .field("scale_rows", scales.end())
      .end();
}

} // namespace

const std::string &tablesText() {
  static const std::string text = Object()
                                      .field("elements", listOf(kElements, elementText))
                                      .field("sizes", listOf(kSizes, sizeText))
                                      .field("kinds", listOf(Kind::all(), kindText))
                                      .field("kind_suffixes", suffixesText())
                                      .end();
  return text;
}

} // namespace heddle
