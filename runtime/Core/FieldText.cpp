#include "runtime/Core/FieldText.h"

#include <charconv>

namespace heddle {

std::string fieldValueText(const std::string &value) {
  std::string text;
  text.reserve(value.size() + value.size() / 64); // code has about so many to escape
  size_t begin = 0;
  for (size_t end = 0; end < value.size(); ++end)
    if (value[end] == '\n' || value[end] == '\\') {
      text.append(value, begin, end - begin).append(value[end] == '\n' ? "\\n" : "\\\\");
      begin = end + 1;
    }
  return text.append(value, begin);
}

std::string fieldValueText(int64_t value) { return std::to_string(value); }

std::string fieldValueText(double value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return error == std::errc() ? std::string(buffer, end) : std::string("nan");
}

std::string fieldValueText(DType value) { return dtypeName(value); }

} // namespace heddle
