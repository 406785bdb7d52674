// Owns how wide words are in pictures, before anybody renders them: they are set in a monospaced font, whose letters
// all advance alike, and lines are broken at the width that there is. And the page that all pictures stand on.
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

/// The shortest text with at most two decimals.
std::string svgNumber(double value);

/// A page that is drawn from the top: what takes room says where it ends.
class SvgPage {
public:
  static constexpr double kMargin = 24;
  static constexpr int kTitleSize = 16, kTextSize = 11;
  static constexpr const char *kBold = " font-weight=\"bold\"", *kMuted = " fill=\"#555555\"";

  /// Where lines begin, and how long they may be.
  struct Room {
    double x, top, width;
  };

  /// `content` is between the margins.
  explicit SvgPage(double content = 0) : content(content) {}

  static double lineHeight(int fontSize) { return fontSize * 1.35; }

  void label(double x, double baseline, int size, const std::string &words, const std::string &more = "");
  /// Lines below the top.
  double paragraph(Room room, int size, const std::string &words, const std::string &more = "");
  double paragraph(double top, int size, const std::string &words, const std::string &more = "") {
    return paragraph({kMargin, top, content}, size, words, more);
  }
  /// `title` is shown where a reader points at it.
  void rect(Room at, double height, const std::string &attributes, const std::string &title = "");
  /// All of it, above `height`.
  std::string document(const std::string &title, double height, const std::string &definitions = "") const;

protected:
  double content;
  std::string text;
};

} // namespace heddle::views
