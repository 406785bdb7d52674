#include "runtime/Core/DType.h"

namespace heddle {
namespace {

template <class Text> std::string listOf(ElementSet set, const char *last, Text textOf) {
  std::vector<std::string> words;
  for (const ElementTraits &element : kElements)
    if ((element.*set)())
      words.push_back(textOf(element));
  std::string list;
  for (size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 < words.size() ? ", " : std::string(" ") + last + " ") + words[i];
  return list;
}

} // namespace

std::optional<DType> findElement(ElementName column, std::string_view name, ElementSet set) {
  for (const ElementTraits &element : kElements)
    if ((element.*set)() && name == element.*column)
      return element.dtype;
  return std::nullopt;
}

std::optional<DType> parseDType(std::string_view name) {
  return findElement(&ElementTraits::name, name, &ElementTraits::isOfCalls);
}

std::optional<DType> dtypeOfCode(int32_t code) {
  for (const ElementTraits &element : kElements)
    if (element.isOfCalls() && element.code == code)
      return element.dtype;
  return std::nullopt;
}

std::vector<std::string> elementNames(ElementSet set) {
  std::vector<std::string> names;
  for (const ElementTraits &element : kElements)
    if ((element.*set)())
      names.push_back(element.name);
  return names;
}

std::string elementList(ElementSet set, ElementName column, const char *last) {
  return listOf(set, last, [=](const ElementTraits &element) { return std::string(element.*column); });
}

std::string expectedElement(ElementSet set, int32_t code) {
  const std::string known = listOf(set, "or", [](const ElementTraits &element) {
    return std::string(element.name) + " (" + std::to_string(element.code) + ")";
  });
  return "dtype: expected " + known + ", got " + std::to_string(code);
}

} // namespace heddle
