#include "runtime/Core/ParseCount.h"

#include <charconv>
#include <limits>

namespace heddle {
namespace {

using Wide = __int128;
constexpr Wide kMost = std::numeric_limits<int64_t>::max();

// Decimal digits only, at least one.
std::optional<int64_t> digits(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.front() == '-')
    return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<Wide> power(std::string_view base, std::string_view exponent) {
  const std::optional<int64_t> factor = digits(base), times = digits(exponent);
  if (!factor || !times || *times > 62)
    return std::nullopt;
  Wide value = 1;
  for (int64_t i = 0; i < *times; ++i)
    if ((value *= *factor) > kMost)
      return std::nullopt;
  return value;
}

// The multiple that the last letter stands for; 1 for a digit.
int64_t unitOf(char last) {
  switch (last) {
  case 'k':
  case 'K':
    return int64_t(1) << 10;
  case 'm':
  case 'M':
    return int64_t(1) << 20;
  case 'g':
  case 'G':
    return int64_t(1) << 30;
  case 't':
  case 'T':
    return int64_t(1) << 40;
  default:
    return 1;
  }
}

// "1.5" of units of 1024, whole in the end.
std::optional<Wide> multiple(std::string_view text, int64_t unit) {
  const size_t point = text.find('.');
  const std::optional<int64_t> whole = digits(text.substr(0, point));
  if (!whole || Wide(*whole) * unit > kMost)
    return std::nullopt;
  if (point == std::string_view::npos)
    return Wide(*whole) * unit;
  const std::string_view behind = text.substr(point + 1);
  const std::optional<int64_t> part = digits(behind);
  if (!part || behind.size() > 18 || unit == 1)
    return std::nullopt;
  Wide parts = 1;
  for (size_t i = 0; i < behind.size(); ++i)
    parts *= 10;
  const Wide scaled = Wide(*part) * unit;
  return scaled % parts == 0 ? std::optional(Wide(*whole) * unit + scaled / parts) : std::nullopt;
}

} // namespace

std::optional<int64_t> parseCount(std::string_view text) {
  const bool isNegative = !text.empty() && text.front() == '-';
  const std::string_view size = text.substr(isNegative);
  if (size.empty())
    return std::nullopt;
  const size_t caret = size.find('^');
  const int64_t unit = unitOf(size.back());
  const std::optional<Wide> value = caret != std::string_view::npos
                                        ? power(size.substr(0, caret), size.substr(caret + 1))
                                        : multiple(size.substr(0, size.size() - (unit > 1)), unit);
  if (!value || *value > kMost)
    return std::nullopt;
  return int64_t(isNegative ? -*value : *value);
}

} // namespace heddle
