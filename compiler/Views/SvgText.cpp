//===- SvgText.cpp - text of which the width is known ---------------------===//
#include "compiler/Views/SvgText.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/Unicode.h"

namespace heddle::views {
namespace {

constexpr const char *kNoCharacter = "\uFFFD";

/// Columns of a terminal: wide letters take two.
int columns(const std::string &text) {
  const int width = llvm::sys::unicode::columnWidthUTF8(text);
  return width >= 0 ? width : int(text.size());
}

/// The first letters of `word` that fit, at least one.
std::string fittingPart(const std::string &word, int most) {
  std::string part;
  for (size_t end = 1; end <= word.size(); ++end) {
    const bool isWhole = end == word.size() || (word[end] & 0xc0) != 0x80;
    if (isWhole && !part.empty() && columns(word.substr(0, end)) > most)
      break;
    if (isWhole)
      part = word.substr(0, end);
  }
  return part;
}

} // namespace

double textWidth(const std::string &text, int fontSize) { return columns(text) * kAdvance * fontSize; }

std::vector<std::string> wrapText(const std::string &text, int fontSize, double width) {
  const int most = std::max(1, int(width / (kAdvance * fontSize)));
  std::vector<std::string> lines = {""};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    std::string &line = lines.back();
    if (const std::string joined = line.empty() ? word : line + " " + word; columns(joined) <= most) {
      line = joined;
    } else {
      if (!line.empty())
        lines.emplace_back();
      for (; columns(word) > most; lines.emplace_back()) {
        lines.back() = fittingPart(word, most);
        word.erase(0, lines.back().size());
      }
      lines.back() = word;
    }
    begin = end + 1;
  }
  return lines;
}

std::string escapeXml(const std::string &text) {
  std::string result;
  for (char c : llvm::json::isUTF8(text) ? text : llvm::json::fixUTF8(text)) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += (unsigned char)c < 0x20 ? kNoCharacter : std::string(1, c);
    }
  }
  return result;
}

} // namespace heddle::views
