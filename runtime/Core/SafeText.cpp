#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace heddle {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool isValid = false;
};

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

size_t bytesOfLead(unsigned char lead) {
  return lead < 0x80                   ? 1
         : lead >= 0xc2 && lead < 0xe0 ? 2
         : lead >= 0xe0 && lead < 0xf0 ? 3
         : lead >= 0xf0 && lead < 0xf5 ? 4
                                       : 0;
}

// The character at the front of `text`, which is not empty: the shortest form of a code point that is no half of a
// pair.
Character characterOf(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = bytesOfLead(lead);
  if (bytes == 0 || text.size() < bytes)
    return {lead, 1, false};
  uint32_t code = bytes == 1 ? lead : lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!isContinuation(text[i]))
      return {lead, 1, false};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isWhole = code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isWhole ? Character{code, bytes, true} : Character{lead, 1, false};
}

bool isUnsafe(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

void append(std::string &to, std::string_view text, bool keepsLines) {
  for (size_t i = 0; i < text.size();) {
    if (text[i] >= 0x20 && text[i] < 0x7f) {
      to += text[i++];
      continue;
    }
    const Character found = characterOf(text.substr(i));
    const bool isLayout = keepsLines && (found.code == '\n' || found.code == '\t');
    char escape[16];
    if (found.isValid && (isLayout || !isUnsafe(found.code)))
      to += text.substr(i, found.bytes);
    else
      to.append(escape, size_t(std::snprintf(escape, sizeof escape, found.isValid ? "\\u%04x" : "\\x%02x",
                                             unsigned(found.code))));
    i += found.bytes;
  }
}

// The most bytes up to `most` that end at a character.
size_t cutAt(std::string_view text, size_t most) {
  if (text.size() <= most)
    return text.size();
  size_t end = most;
  while (end > 0 && most - end < 4 && isContinuation(text[end]))
    --end;
  return end;
}

} // namespace

std::string safeText(std::string_view text) {
  std::string safe;
  append(safe, text, /*keepsLines=*/true);
  return safe;
}

std::string safeLine(std::string_view text, size_t most) {
  std::string safe;
  append(safe, text.substr(0, cutAt(text, most)), /*keepsLines=*/false);
  if (text.size() <= most && safe.size() <= most)
    return safe;
  return safe.substr(0, cutAt(safe, most)) + "...";
}

std::string safeMessage(std::string_view text) {
  std::string message;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size()), length = end - begin;
    if (message.size() > kMostMessageBytes)
      return message + "\n... " + std::to_string(text.size() - begin) + " more bytes";
    message += begin == 0 ? "" : "\n";
    const size_t kept = cutAt(text.substr(begin, length), kMostLineBytes);
    append(message, text.substr(begin, kept), /*keepsLines=*/true);
    if (kept < length)
      message += "... " + std::to_string(length - kept) + " more bytes";
    begin = end + 1;
  }
  return message;
}

size_t wholeCharacters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (!isContinuation(c))
      return bytesOfLead(static_cast<unsigned char>(c)) > back ? text.size() - back : text.size();
  }
  return text.size();
}

} // namespace heddle
