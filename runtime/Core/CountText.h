// Owns how people read counts: "1 head", "8,192 queries". All text for people says them so; what can be given back
// (values that were expected or given, positions, keys, fields of a configuration) and JSON keep their bare digits.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

__extension__ typedef __int128 CountedNumber;

// 1234567 gives "1,234,567".
std::string grouped(CountedNumber value);

// "query" gives "queries", "class" "classes", "GPU" "GPUs"; of several words the last one changes.
std::string pluralOf(std::string_view noun);

// The noun for so many.
std::string nounFor(CountedNumber count, std::string_view noun);

// The number and its noun.
std::string counted(CountedNumber count, std::string_view noun);

} // namespace heddle
