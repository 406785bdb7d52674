// Owns what of a text that somebody else wrote (a name, a source line, a column of a database) may reach a terminal or
// a log. Control characters (C0, DEL, C1), marks that reorder or break lines (bidi controls, U+2028, U+2029) and bytes
// that are no UTF-8 become "\u001b" or "\xff", which is also what JSON writes. Text without any comes back as it is, so
// doing it twice does no harm.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

constexpr size_t kMostNameBytes = 200;      // of a name in a sentence
constexpr size_t kMostLineBytes = 2000;     // of one line of a message
constexpr size_t kMostMessageBytes = 32768; // of a message

// Keeps newlines and tabs; any length.
std::string safeText(std::string_view text);

// One line: newlines and tabs are escaped too, and what is longer than `most` bytes is cut at a character and ends with
// "...".
std::string safeLine(std::string_view text, size_t most = kMostNameBytes);

// safeText with long lines cut, and the whole: what was left out is said by number.
std::string safeMessage(std::string_view text);

// How many bytes at the front of `text` are whole characters, where more of it may follow.
size_t wholeCharacters(std::string_view text);

} // namespace heddle
