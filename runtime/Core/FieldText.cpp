//===- FieldText.cpp --------------------------------------------------------===//
#include "runtime/Core/FieldText.h"

#include <charconv>

namespace heddle {

std::string fieldValueText(const std::string &value) {
  std::string text;
  for (char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\\')
      text += "\\\\";
    else
      text += c;
  }
  return text;
}

std::string fieldValueText(int64_t value) { return std::to_string(value); }

std::string fieldValueText(double value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return error == std::errc() ? std::string(buffer, end) : std::string("nan");
}

std::string fieldValueText(DType value) { return dtypeName(value); }

} // namespace heddle
