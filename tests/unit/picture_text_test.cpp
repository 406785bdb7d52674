//===- picture_text_test.cpp - no text is cut off or drawn over ----------------===//
// Measures every text of the pictures of all library patterns, shown and compared, against the picture's edges and
// against the other texts; colours of comparisons as people with other colour vision see them.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "compiler/Views/PatternDiff.h"
#include "compiler/Views/RingPlan.h"
#include "compiler/Views/SvgText.h"
#include "support/PatternFiles.h"

#include <array>
#include <cmath>
#include <regex>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

struct Box {
  double left, top, right, bottom;
  std::string text;
};

std::string attributeOf(const std::string &tag, const std::string &name) {
  const size_t at = tag.find(" " + name + "=\"");
  return at == std::string::npos
             ? ""
             : tag.substr(at + name.size() + 3, tag.find('"', at + name.size() + 3) - at - name.size() - 3);
}

/// Letters of text with entities.
int lettersOf(const std::string &content) {
  const std::string plain = std::regex_replace(content, std::regex("&[a-z]+;"), "&");
  return int(std::count_if(plain.begin(), plain.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Where each text is in a font whose letters advance by 0.602 of its size and rise and hang as most do.
std::vector<Box> textsOf(const std::string &svg) {
  std::vector<Box> boxes;
  const bool isMonospaced = attributeOf(svg, "font-family").find("monospace") != std::string::npos;
  for (size_t at = 0; (at = svg.find("<text", at)) != std::string::npos; ++at) {
    const size_t end = svg.find('>', at), close = svg.find("</text>", end);
    const std::string tag = svg.substr(at, end - at), content = svg.substr(end + 1, close - end - 1);
    const double size = std::stod(attributeOf(tag, "font-size")), baseline = std::stod(attributeOf(tag, "y"));
    const double width = lettersOf(content) * size * (isMonospaced ? 0.602 : 0.55);
    double left = std::stod(attributeOf(tag, "x"));
    left -= attributeOf(tag, "text-anchor") == "end" ? width : 0;
    boxes.push_back({left, baseline - 0.76 * size, left + width, baseline + 0.24 * size, content});
  }
  return boxes;
}

bool overlap(const Box &a, const Box &b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/// What is wrong with the texts of a picture; empty: nothing.
std::string textProblem(const std::string &svg) {
  double width = 0, height = 0;
  REQUIRE(std::sscanf(attributeOf(svg, "viewBox").c_str(), "0 0 %lf %lf", &width, &height) == 2);
  const std::vector<Box> boxes = textsOf(svg);
  REQUIRE(boxes.size() >= 4);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box &box = boxes[i];
    if (box.left < 0 || box.top < 0 || box.right > width || box.bottom > height)
      return "cut off: " + box.text;
    for (size_t other = 0; other < i; ++other)
      if (overlap(box, boxes[other]))
        return "over each other: " + box.text + " | " + boxes[other].text;
  }
  return "";
}

PictureRequest requestOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK) {
  PictureRequest request;
  request.sizes = {heads, seqlenQ, seqlenK, 0, 0, sizesFrom(file, 3)};
  request.operands = maskOperands(file, heads, seqlenQ, seqlenK, request.sizes.parameters);
  request.sizes.tensors = tensorDataOf(request.operands);
  request.invented = {"cu_q (documents)", "cu_k (documents)"};
  return request;
}

std::string shown(const PatternFile &file, const PictureRequest &request) {
  auto picture = draw(file, request);
  REQUIRE_MESSAGE(picture.isOk(), picture.status().message());
  return svg(*picture);
}

Picture compared(const PatternFile &a, const PatternFile &b, int64_t heads, int64_t length) {
  PictureRequest first = requestOf(a, heads, length, length), second = requestOf(b, heads, length, length);
  auto picture = drawDifference({a, first.sizes, first.operands}, {b, second.sizes, second.operands}, first);
  REQUIRE_MESSAGE(picture.isOk(), picture.status().message());
  return picture.take();
}

using Colour = std::array<double, 3>;

Colour linearOf(const std::string &hex) {
  Colour colour;
  for (int i = 0; i < 3; ++i) {
    const double value = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    colour[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return colour;
}

Colour times(const std::array<Colour, 3> &matrix, const Colour &colour) {
  Colour result{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      result[i] += matrix[i][j] * colour[j];
  return result;
}

/// CIE L*a*b* of linear sRGB, under D65.
Colour labOf(const Colour &linear) {
  const Colour xyz = times({{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}}, linear);
  const Colour white = {0.9505, 1, 1.089};
  Colour f;
  for (int i = 0; i < 3; ++i) {
    const double ratio = std::max(xyz[i] / white[i], 0.0);
    f[i] = ratio > 0.008856 ? std::cbrt(ratio) : 7.787 * ratio + 16.0 / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double distance(const Colour &a, const Colour &b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

struct Vision {
  const char *name;
  std::array<Colour, 3> matrix;
};

/// Machado, Oliveira, Fernandes 2009, severity 1; the last one sees lightness only.
const Vision kVisions[] = {
    {"usual", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}},
    {"lightness", {{{0.2126, 0.7152, 0.0722}, {0.2126, 0.7152, 0.0722}, {0.2126, 0.7152, 0.0722}}}},
};

} // namespace

TEST_CASE("texts of every library pattern lie within its picture and apart from each other") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    for (const std::array<int64_t, 3> &sizes :
         {std::array<int64_t, 3>{1, 1, 1}, {8, 24, 24}, {8, 4096, 4096}, {12, 1, 100000}, {3, 1000000, 64}}) {
      CAPTURE(sizes[1]);
      CHECK(textProblem(shown(*file, requestOf(*file, sizes[0], sizes[1], sizes[2]))) == "");
    }
  }
}

TEST_CASE("texts of comparisons lie within their pictures and apart from each other") {
  std::vector<std::unique_ptr<PatternFile>> files;
  for (const std::string &path : libraryPatterns())
    files.push_back(loaded(path));
  for (size_t i = 0; i < files.size(); ++i) {
    CAPTURE(files[i]->path());
    const PatternFile &next = *files[(i + 1) % files.size()];
    const bool hasBlocks = i % 6 == 0; // as many texts, many more pairs
    CHECK(textProblem(svg(compared(*files[i], next, 6, hasBlocks ? 150 : 16))) == "");
  }
}

TEST_CASE("names and sizes of any length are broken into lines") {
  const std::string name(256, 'n'); // the longest that a pattern may have
  auto file = parsed("attn.pattern @" + name + "(%left: i32) { %m = attn.window [%left, 0] attn.softmax union(%m) }");
  const std::string document = shown(*file, requestOf(*file, 1, 24, 24));
  CHECK(textProblem(document) == "");
  CHECK(document.find("<title>" + name) != std::string::npos);
}

TEST_CASE("who asks whom for keys, of few ranks and of more than there are cells") {
  auto file = parsed("attn.pattern @" + std::string(90, 'n') +
                     "(%left: i32) { %m = attn.window [%left, 0] attn.softmax union(%m) }");
  for (int64_t ranks : {1, 5, 70, 300}) {
    RingRequest request;
    request.sizes = {1, 4096, 4096, 0, 0, {40}};
    request.call.rates = {1, 0, 1};
    request.ranks = ranks;
    auto ring = planRing(*file, request);
    REQUIRE(ring.isOk());
    addGroupTimes(*file, request, **ring);
    addSpans(*file, request, **ring);
    const std::string document = ringSvg(*file, request, **ring);
    CHECK(document.find("What ranks do when") != std::string::npos);
    CHECK(textProblem(document) == "");
    CHECK(document.find("keys of rank 0 to " + std::to_string(ranks - 1)) != std::string::npos);
  }
}

TEST_CASE("lines are broken at blanks, and words only where they are longer than a line") {
  using Lines = std::vector<std::string>;
  const double ten = 10 * kAdvance * 10 + 0.1;
  CHECK(wrapText("", 10, ten) == Lines{""});
  CHECK(wrapText("one two three", 10, ten) == Lines{"one two", "three"});
  CHECK(wrapText("a twelve-long-word", 10, ten) == Lines{"a", "twelve-lon", "g-word"});
  CHECK(wrapText("0123456789 x", 10, ten) == Lines{"0123456789", "x"});
  CHECK(wrapText("\u2192\u2192\u2192\u2192\u2192\u2192 \u2192\u2192\u2192\u2192", 10, ten) ==
        Lines{"\u2192\u2192\u2192\u2192\u2192\u2192", "\u2192\u2192\u2192\u2192"});
  CHECK(wrapText("word", 10, 1) == Lines{"w", "o", "r", "d"});
}

TEST_CASE("XML holds what is written into it") {
  CHECK(escapeXml("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;");
  CHECK(escapeXml("\x1b[31m") == "\uFFFD[31m");
  CHECK(escapeXml("\xff") == "\uFFFD");
}

TEST_CASE("what only one of two patterns keeps is told apart without hue") {
  auto first = parsed(unionText("%a = attn.stride k by 2 at 0 %b = attn.causal %m = attn.and %a, %b"));
  auto second = parsed(unionText("%a = attn.stride k by 2 at 1 %b = attn.window [40, 60] %m = attn.and %a, %b"));
  const Picture picture = compared(*first, *second, 1, 300);
  const std::array kinds = {Cell::Full, Cell::OnlyFirst, Cell::OnlySecond, Cell::Differs, Cell::Skipped};
  for (const Vision &vision : kVisions)
    for (Cell a : kinds)
      for (Cell b : kinds) {
        if (a >= b)
          continue;
        CAPTURE(vision.name);
        CAPTURE(lookOf(a, picture).fill);
        CAPTURE(lookOf(b, picture).fill);
        const std::string hatchA = lookOf(a, picture).hatch, hatchB = lookOf(b, picture).hatch;
        const double apart = distance(labOf(times(vision.matrix, linearOf(lookOf(a, picture).fill))),
                                      labOf(times(vision.matrix, linearOf(lookOf(b, picture).fill))));
        CHECK(apart >= (hatchA == hatchB ? 40 : 10));
        CHECK(std::string(lookOf(a, picture).glyph) != lookOf(b, picture).glyph);
      }
  const std::string document = svg(picture);
  for (Cell cell : {Cell::OnlyFirst, Cell::OnlySecond, Cell::Differs}) {
    REQUIRE(picture.uses(cell));
    CHECK(*lookOf(cell, picture).hatch != 0);
    CHECK(document.find(lookOf(cell, picture).hatch) != std::string::npos);
    CHECK(document.find("url(#hatch" + std::to_string(int(cell)) + ")") != std::string::npos);
  }
}

TEST_CASE("tensors that nobody gave are called invented") {
  auto file = loaded(test::places().patterns + "/document.mlir");
  auto picture = draw(*file, requestOf(*file, 1, 64, 64));
  REQUIRE(picture.isOk());
  const std::string note = "Invented: cu_q (documents), cu_k";
  CHECK(svg(*picture).find(note) != std::string::npos);
  CHECK(blockText(*picture).find(note) != std::string::npos);
  picture->invented.clear();
  CHECK(svg(*picture).find("nvented") == std::string::npos);
  CHECK(blockText(*picture).find("nvented") == std::string::npos);
}
