#include "compiler/Views/SvgText.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/Unicode.h"

#include <cstdio>

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

std::string svgNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string result = text;
  while (result.back() == '0')
    result.pop_back();
  if (result.back() == '.')
    result.pop_back();
  return result;
}

void SvgPage::label(double x, double baseline, int size, const std::string &words, const std::string &more) {
  text += "<text x=\"" + svgNumber(x) + "\" y=\"" + svgNumber(baseline) + "\" font-size=\"" + std::to_string(size) +
          "\"" + more + ">" + escapeXml(words) + "</text>\n";
}

double SvgPage::paragraph(Room room, int size, const std::string &words, const std::string &more) {
  for (const std::string &line : wrapText(words, size, room.width)) {
    label(room.x, room.top + size, size, line, more);
    room.top += lineHeight(size);
  }
  return room.top;
}

void SvgPage::rect(Room at, double height, const std::string &attributes, const std::string &title) {
  text += "<rect x=\"" + svgNumber(at.x) + "\" y=\"" + svgNumber(at.top) + "\" width=\"" + svgNumber(at.width) +
          "\" height=\"" + svgNumber(height) + "\" " + attributes +
          (title.empty() ? "/>\n" : "><title>" + escapeXml(title) + "</title></rect>\n");
}

std::string SvgPage::document(const std::string &title, double height, const std::string &definitions) const {
  const std::string right = svgNumber(content + 2 * kMargin), bottom = svgNumber(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + right + " " + bottom + "\" width=\"" + right +
         "\" height=\"" + bottom + "\" font-family=\"" + kFontFamily + "\" fill=\"#222222\">\n<title>" +
         escapeXml(title) + "</title>\n" + definitions + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
         text + "</svg>\n";
}

} // namespace heddle::views
