//===- show_test.cpp - pictures are sound and well formed ----------------------===//
// What a cell says against every pair of the definition; SVG as XML; text within 80 columns.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "compiler/Oracle/PatternOracle.h"
#include "compiler/Views/Picture.h"
#include "support/PatternFiles.h"

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

Picture drawn(const PatternFile &file, const PictureRequest &request) {
  auto picture = draw(file, request);
  REQUIRE_MESSAGE(picture.isOk(), picture.status().message());
  return picture.take();
}

PictureRequest requestOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK, int64_t size) {
  PictureRequest request;
  request.sizes = {heads, seqlenQ, seqlenK, 0, 0, sizesFrom(file, size)};
  request.tile = {4, 4};
  request.operands = maskOperands(file, heads, seqlenQ, seqlenK, request.sizes.parameters);
  request.sizes.tensors = tensorDataOf(request.operands);
  return request;
}

struct CellPairs {
  int64_t kept = 0, all = 0; ///< pairs kept by a branch or more
  int64_t least = 1000;      ///< fewest branches that keep a pair
};

CellPairs pairsOf(const oracle::PatternOracle &definition, const Picture &picture, const Grid &grid, int64_t head,
                  int64_t row, int64_t column) {
  CellPairs pairs;
  for (int64_t i = row * grid.cellRows; i < std::min((row + 1) * grid.cellRows, picture.sizes.seqlenQ); ++i)
    for (int64_t j = column * grid.cellColumns; j < std::min((column + 1) * grid.cellColumns, picture.sizes.seqlenK);
         ++j) {
      int64_t copies = 0;
      for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
        copies += definition.keeps(branch, head, i, j);
      ++pairs.all;
      pairs.kept += copies > 0;
      pairs.least = std::min(pairs.least, copies);
    }
  return pairs;
}

bool isSound(Cell cell, const CellPairs &pairs, bool mayBeEmpty) {
  switch (cell) {
  case Cell::Skipped:
    return pairs.kept == 0;
  case Cell::Partial:
    return mayBeEmpty || pairs.kept > 0;
  case Cell::Lattice:
    return pairs.kept > 0;
  case Cell::Full:
    return pairs.kept == pairs.all;
  case Cell::Twice:
    return pairs.least >= 2;
  case Cell::OnlyFirst:
  case Cell::OnlySecond:
  case Cell::Differs:
    return false; // one pattern has no such cells
  }
  return false;
}

void checkSound(const PatternFile &file, const PictureRequest &request) {
  Picture picture = drawn(file, request);
  const attn::ProblemSizes &s = picture.sizes;
  oracle::PatternOracle definition(file.pattern(),
                                   {s.heads, s.seqlenQ, s.seqlenK, 0, 0, s.parameters, request.operands});
  int64_t heads = 0, unsound = 0;
  for (const Panel &panel : picture.panels)
    for (int64_t head : panel.heads) {
      ++heads;
      REQUIRE(panel.grid.cells.size() == size_t(panel.grid.rows * panel.grid.columns));
      CHECK(panel.grid.rows * panel.grid.cellRows >= s.seqlenQ);
      double kept = 0;
      for (int64_t row = 0; row < panel.grid.rows; ++row)
        for (int64_t column = 0; column < panel.grid.columns; ++column) {
          CellPairs pairs = pairsOf(definition, picture, panel.grid, head, row, column);
          unsound += !isSound(panel.grid.at(row, column), pairs, true);
          kept += double(pairs.kept);
        }
      if (panel.density && definition.branchCount() == 1)
        CHECK(*panel.density == doctest::Approx(kept / (double(s.seqlenQ) * double(s.seqlenK))));
    }
  CHECK(heads == s.heads);
  CHECK(unsound == 0);
}

/// Tags balance, attributes are quoted, text has no bare < or &. Enough for what the writer can get wrong.
std::string xmlProblem(const std::string &text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      size_t end = text.find(';', at);
      std::string name = end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot")
        return "bare & at " + std::to_string(at);
    }
    if (text[at] != '<')
      continue;
    size_t end = text.find('>', at);
    if (end == std::string::npos)
      return "unclosed tag at " + std::to_string(at);
    std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2)
      return "broken tag " + tag;
    std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != name)
        return "closes " + name;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "left open: " + open.back();
}

int64_t widestLine(const std::string &text) {
  int64_t widest = 0, width = 0;
  for (unsigned char c : text) {
    if (c == '\n')
      width = 0;
    else if ((c & 0xc0) != 0x80)
      widest = std::max(widest, ++width);
  }
  return widest;
}

} // namespace

TEST_CASE("every pair of a small problem is shown as it is") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    PictureRequest request = requestOf(*file, 4, 31, 40, 3);
    CHECK(drawn(*file, request).showsPairs);
    checkSound(*file, request);
  }
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    auto file = parsed(text);
    checkSound(*file, requestOf(*file, 3, 25, 25, 3));
  }
}

TEST_CASE("cells of tiles are sound") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    for (int64_t cells : {5, 16}) {
      PictureRequest request = requestOf(*file, 3, 110, 131, 6);
      request.maxRows = request.maxColumns = cells;
      CHECK_FALSE(drawn(*file, request).showsPairs);
      checkSound(*file, request);
    }
  }
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    auto file = parsed(text);
    PictureRequest request = requestOf(*file, 3, 70, 61, 6);
    request.maxRows = request.maxColumns = 9;
    checkSound(*file, request);
  }
}

TEST_CASE("classes are told apart where the pattern has them") {
  auto causal = loaded(test::places().patterns + "/causal.mlir");
  PictureRequest request = requestOf(*causal, 1, 64, 64, 0);
  request.maxRows = request.maxColumns = 8;
  Grid grid = drawn(*causal, request).panels[0].grid;
  REQUIRE((grid.rows == 8 && grid.columns == 8));
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t column = 0; column < 8; ++column)
      CHECK(grid.at(row, column) == (column < row ? Cell::Full : column == row ? Cell::Partial : Cell::Skipped));
  auto strided = parsed(unionText("%a = attn.full %m = attn.dilate %a by 2 at 1"));
  PictureRequest lattice = requestOf(*strided, 1, 64, 64, 0);
  lattice.maxRows = lattice.maxColumns = 8;
  CHECK(drawn(*strided, lattice).panels[0].grid.at(3, 3) == Cell::Lattice);
  auto twice = parsed("attn.pattern @p() { %a = attn.full attn.softmax lse(%a, %a) }");
  CHECK(drawn(*twice, requestOf(*twice, 1, 4, 4, 0)).panels[0].grid.at(0, 0) == Cell::Twice);
}

TEST_CASE("heads that look alike share a panel") {
  auto file = loaded(test::places().patterns + "/dilated.mlir");
  Picture picture = drawn(*file, requestOf(*file, 8, 16384, 16384, 0));
  REQUIRE(picture.panels.size() == 3);
  CHECK(headsInWords(picture.panels[0].heads) == "heads 0 to 2");
  CHECK(headsInWords(picture.panels[2].heads) == "heads 6 to 7");
  PictureRequest one = requestOf(*file, 8, 16384, 16384, 0);
  one.head = 6;
  REQUIRE(drawn(*file, one).panels.size() == 1);
  CHECK(headsInWords(drawn(*file, one).panels[0].heads) == "head 6");
}

TEST_CASE("heads that visit alike are painted once, and their densities take no more than one count may") {
  auto file = parsed(unionText(
      "%a = attn.random count 3 seed 5 per_head %b = attn.blocks %a by [64] %c = attn.causal %m = attn.or %b, %c"));
  auto alike = parsed(unionText("%m = attn.causal"));
  for (auto [pattern, painted] : {std::pair(file.get(), int64_t(8)), {alike.get(), int64_t(1)}}) {
    PictureRequest request = requestOf(*pattern, 8, 4096, 4096, 0);
    int64_t rows = 0;
    request.progress = [&](double) { ++rows; };
    const Picture picture = drawn(*pattern, request);
    CHECK(rows == painted * picture.panels[0].grid.rows);
    for (const Panel &panel : picture.panels)
      CHECK(panel.density.has_value());
    request.sizes.mostEvaluations = 1;
    for (const Panel &panel : drawn(*pattern, request).panels)
      CHECK(!panel.density.has_value());
  }
}

TEST_CASE("SVG is well formed and text fits the terminal") {
  for (const std::string &path : halfOfLibrary(0)) {
    CAPTURE(path);
    auto file = loaded(path);
    for (int64_t length : {int64_t(1), int64_t(24), int64_t(9000), int64_t(1000000)}) {
      CAPTURE(length);
      PictureRequest request = requestOf(*file, 4, length, length, 3);
      request.tile = {128, 128};
      std::string document = svg(drawn(*file, request));
      CHECK(xmlProblem(document) == "");
      CHECK(document.find("<title>") != std::string::npos);
      CHECK(document.size() < 600000);
      request.maxRows = 36;
      request.maxColumns = 72;
      std::string text = blockText(drawn(*file, request));
      CHECK(widestLine(text) <= 80);
    }
  }
  CHECK(xmlProblem("<a><b></a></b>") != "");
  CHECK(xmlProblem("<a x=\"1>t</a>") != "");
}

TEST_CASE("lists that nobody would wait for are refused, not read") {
  auto file = PatternFile::parse("attn.pattern @p(%c: i32) { %m = attn.random count %c seed 1 attn.softmax union(%m) }",
                                 "lists.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  PictureRequest request;
  request.sizes = {1, 1000000, 1000000, 0, 0, {1000000}};
  auto picture = draw(**file, request);
  CHECK(picture.status().code() == StatusCode::unsupported);
  CHECK(picture.status().message().find("are more than 16,777,216; take a smaller --seqlen") != std::string::npos);
  request.sizes.parameters = {4};
  CHECK(draw(**file, request).isOk());
}
