//===- SvgText.h - text of which the width is known -------------*- C++ -*-===//
// Owns how wide words are in pictures, before anybody renders them: they are set in a monospaced font, whose letters
// all advance alike, and lines are broken at the width that there is.
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace heddle::views {

inline constexpr const char *kFontFamily = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace";
/// Letters advance by so much of the font size, or less: 0.602 is the most among these fonts.
inline constexpr double kAdvance = 0.61;

/// In units of the picture, of text that is UTF-8.
double textWidth(const std::string &text, int fontSize);

/// Lines no wider than `width`, broken at blanks, and within a word only where it is wider than a line. At least one.
std::vector<std::string> wrapText(const std::string &text, int fontSize, double width);

/// As content of an element or an attribute; what XML cannot hold becomes U+FFFD.
std::string escapeXml(const std::string &text);

} // namespace heddle::views
