// The one parser of counts of tokens, rows and heads: the command line, plan files and run-time sizes all take what it
// takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

// "8192", "-4", "8k" (8 * 1024), "1M", "1G", "1T", "1.5k", "2^20". Letters are binary multiples, in either case.
// Nothing: no such number, one that is not whole, or one beyond 64 bits.
std::optional<int64_t> parseCount(std::string_view text);

// What a refusal says that it expected.
inline constexpr const char *kCountForms = "a whole number such as 8192, 8k or 2^13";

} // namespace heddle
