#include "runtime/Core/CountText.h"

#include <algorithm>

namespace heddle {

std::string grouped(CountedNumber value) {
  std::string reversed;
  const bool isNegative = value < 0;
  int digits = 0;
  do {
    const int digit = int(value % 10);
    if (digits > 0 && digits % 3 == 0)
      reversed += ',';
    reversed += char('0' + (isNegative ? -digit : digit));
    value /= 10;
    ++digits;
  } while (value != 0);
  if (isNegative)
    reversed += '-';
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

std::string pluralOf(std::string_view noun) {
  auto endsIn = [&](std::string_view end) {
    return noun.size() >= end.size() && noun.substr(noun.size() - end.size()) == end;
  };
  const bool hasVowel =
      noun.size() > 1 && std::string_view("aeiou").find(noun[noun.size() - 2]) != std::string_view::npos;
  if (endsIn("y") && !hasVowel)
    return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  if (endsIn("s") || endsIn("x") || endsIn("ch"))
    return std::string(noun) + "es";
  return std::string(noun) + "s";
}

std::string nounFor(CountedNumber count, std::string_view noun) {
  return count == 1 ? std::string(noun) : pluralOf(noun);
}

std::string counted(CountedNumber count, std::string_view noun) { return grouped(count) + " " + nounFor(count, noun); }

} // namespace heddle
