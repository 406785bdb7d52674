#include "compiler/Views/Picture.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Views/KeptRows.h"
#include "dialect/Geometry/TileVisitor.h"
#include "runtime/Core/CountText.h"

#include <numeric>

namespace heddle::views {

using namespace heddle::attn;

namespace {

int64_t roundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
int64_t ceilDivide(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }

/// Asks the compiled predicate for every pair.
class PairPainter {
public:
  PairPainter(KeptRows rows, const ProblemSizes &sizes) : rows(std::move(rows)), sizes(sizes) {}

  std::vector<int64_t> headValues(int64_t head) const { return rows.headValues(head); }

  template <class Progress> Panel paint(int64_t head, Progress progress) {
    Panel panel{{}, {sizes.seqlenQ, sizes.seqlenK, 1, 1, {}}, std::nullopt};
    int64_t kept = 0;
    for (int64_t row = 0; row < sizes.seqlenQ; ++row) {
      progress(double(row) / double(sizes.seqlenQ));
      rows.read(head, row, copies);
      for (uint16_t count : copies) {
        kept += count;
        panel.grid.cells.push_back(count == 0 ? Cell::Skipped : count == 1 ? Cell::Full : Cell::Twice);
      }
    }
    double pairs = double(sizes.seqlenQ) * double(sizes.seqlenK);
    panel.density = pairs > 0 ? double(kept) / pairs : 0;
    return panel;
  }

private:
  KeptRows rows;
  std::vector<uint16_t> copies;
  const ProblemSizes &sizes;
};

/// Merges tiles into cells with the ranges of the analysis: each residue class of the rows of a cell is one tile.
class TilePainter {
public:
  TilePainter(const PatternAnalysis &analysis, const PictureRequest &request)
      : analysis(analysis), sizes(request.sizes), left(request.sizes),
        visitors(analysis, Direction::Forward, request.sizes) {
    int64_t rowUnit = request.tile.rows, columnUnit = request.tile.columns;
    for (const Variant &variant : analysis.variants) {
      rowUnit = std::lcm(rowUnit, variant.forward.rowRate);
      for (const BranchRanges &branch : variant.forward.branches)
        columnUnit = std::lcm(columnUnit, branch.columnRate);
    }
    cellRows = roundUp(ceilDivide(sizes.seqlenQ, request.maxRows), rowUnit);
    cellColumns = roundUp(ceilDivide(sizes.seqlenK, request.maxColumns), columnUnit);
  }

  std::vector<int64_t> headValues(int64_t head) const { return visitors.headValues(head); }

  template <class Progress> Panel paint(int64_t head, Progress progress) {
    Panel panel{
        {},
        {ceilDivide(sizes.seqlenQ, cellRows), ceilDivide(sizes.seqlenK, cellColumns), cellRows, cellColumns, {}},
        density(head)};
    for (int64_t row = 0; row < panel.grid.rows; ++row) {
      progress(double(row) / double(panel.grid.rows));
      paintRow(panel.grid, variantOf(analysis, sizes, head), head, row);
    }
    return panel;
  }

private:
  /// Rows of cells of one head.
  struct CellRow {
    unsigned variant;
    int64_t head, row, classes; ///< residue classes that have rows there
  };

  /// What the residue classes of a cell's rows do, counted.
  struct Votes {
    int visited = 0, latticeFull = 0, full = 0;
  };

  void paintRow(Grid &grid, unsigned number, int64_t head, int64_t row) const {
    const VariantRanges &variant = analysis.variants[number].forward;
    const CellRow cells{number, head, row, std::min(variant.rowRate, sizes.seqlenQ - row * cellRows)};
    std::vector<int> branchesFull(grid.columns, 0);
    std::vector<char> isVisited(grid.columns, 0), isLattice(grid.columns, 1);
    for (size_t branch = 0; branch < variant.branches.size(); ++branch) {
      std::vector<Votes> votes = voteOf(cells, branch, grid.columns);
      for (int64_t c = 0; c < grid.columns; ++c) {
        isVisited[c] |= votes[c].visited > 0;
        isLattice[c] &= votes[c].latticeFull == votes[c].visited;
        branchesFull[c] += votes[c].full == cells.classes;
      }
    }
    for (int64_t c = 0; c < grid.columns; ++c)
      grid.cells.push_back(branchesFull[c] > 1   ? Cell::Twice
                           : branchesFull[c] > 0 ? Cell::Full
                           : !isVisited[c]       ? Cell::Skipped
                           : isLattice[c]        ? Cell::Lattice
                                                 : Cell::Partial);
  }

  std::vector<Votes> voteOf(const CellRow &cells, unsigned branch, int64_t columns) const {
    const VariantRanges &variant = analysis.variants[cells.variant].forward;
    const TileVisitor &visitor = visitors.of(cells.head)[branch];
    int64_t rate = variant.branches[branch].columnRate;
    std::vector<Votes> votes(columns);
    auto forEach = [&](const std::vector<TileRun> &runs, auto count) {
      for (const TileRun &run : runs)
        for (int64_t c = std::max<int64_t>(run.begin, 0); c < std::min(run.end, columns); ++c)
          count(votes[c]);
    };
    for (int64_t rowClass = 0; rowClass < cells.classes; ++rowClass) {
      RowTile tile{rowClass, cells.row, cellRows / variant.rowRate};
      TileVisit visit = visitor.visit(cells.head, tile, cellColumns / rate);
      forEach(visit.visited, [](Votes &v) { ++v.visited; });
      forEach(visit.full, [&](Votes &v) {
        ++v.latticeFull;
        v.full += rate == 1;
      });
    }
    return votes;
  }

  /// One by one tiles are pairs, where the analysis visits exactly the kept ones. None if all heads together take more
  /// evaluations than a count may.
  std::optional<double> density(int64_t head) {
    for (const BranchRanges &branch : analysis.variants[variantOf(analysis, sizes, head)].forward.branches)
      if (branch.masked || branch.mayVisitGaps || branch.exactFromColumns > 1)
        return std::nullopt;
    const TileCounts pairs = countTilesOfHead(analysis, left, head, {1, 1}, Direction::Forward);
    left.mostEvaluations -= pairs.evaluations;
    if (pairs.isBound)
      return std::nullopt;
    return double(pairs.visited) / (double(sizes.seqlenQ) * double(sizes.seqlenK));
  }

  const PatternAnalysis &analysis;
  const ProblemSizes &sizes;
  ProblemSizes left; ///< what densities of further heads may take
  HeadVisitors visitors;
  int64_t cellRows, cellColumns;
};

} // namespace

std::string titleOf(const PatternFile &file, const ProblemSizes &sizes) {
  attn::PatternOp pattern = file.pattern();
  std::string values;
  for (size_t i = 0; i < sizes.parameters.size(); ++i)
    if (!pattern.isOperand(i))
      values += (values.empty() ? "" : ", ") + pattern.getParameterName(i).str() + " = " +
                pattern.getParameterText(i, sizes.parameters[i]);
  return pattern.getSymName().str() + (values.empty() ? "" : " (" + values + ")");
}

/// About three seconds of reading.
static constexpr int64_t kMostDrawnEntries = int64_t(1) << 24;

static Status checkLists(const attn::PatternAnalysis &analysis, const ProblemSizes &sizes) {
  const attn::WideInt entries = attn::longestList(analysis, sizes);
  if (entries <= kMostDrawnEntries)
    return {};
  return Status::unsupported("a picture reads every entry of a pattern's lists, and " + grouped(entries) +
                             " are more than " + grouped(kMostDrawnEntries) +
                             "; take a smaller --seqlen or shorter lists");
}

Result<Picture> draw(const PatternFile &file, const PictureRequest &request) {
  Picture picture{titleOf(file, request.sizes), request.sizes, false, !file.analysis().isStructural(), {}, {}, {}, {}};
  picture.invented = request.invented;
  const ProblemSizes &sizes = request.sizes;
  HEDDLE_TRY(checkMaskTensors(file, sizes));
  picture.showsPairs = sizes.seqlenQ <= request.maxRows && sizes.seqlenK <= request.maxColumns;
  if (picture.showsPairs) {
    HEDDLE_ASSIGN(KeptRows rows, KeptRows::create(file, sizes, request.operands));
    picture.panels = paintHeads(PairPainter(std::move(rows), sizes), request);
  } else {
    HEDDLE_TRY(checkLists(file.analysis(), sizes));
    picture.panels = paintHeads(TilePainter(file.analysis(), request), request);
  }
  return picture;
}

std::string headsInWords(const std::vector<int64_t> &heads) {
  if (heads.size() == 1)
    return "head " + std::to_string(heads.front());
  if (heads.back() - heads.front() + 1 == static_cast<int64_t>(heads.size()))
    return "heads " + std::to_string(heads.front()) + " to " + std::to_string(heads.back());
  std::string text = "heads ";
  for (size_t i = 0; i < heads.size() && i < 6; ++i)
    text += (i ? ", " : "") + std::to_string(heads[i]);
  return text + (heads.size() > 6 ? ", ..." : "");
}

std::string inventedNote(const Picture &picture) {
  std::string names;
  for (const std::string &name : picture.invented)
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "" : "Invented: " + names + ". Give yours with --operand NAME=FILE:TENSOR";
}

/// Differences have the colours of Okabe and Ito, who chose them for every kind of colour vision, over grey.
static CellLook lookOfDifference(Cell cell) {
  switch (cell) {
  case Cell::Full:
    return {"#5a5a5a", "", "\u2588"};
  case Cell::OnlyFirst:
    return {"#d55e00", "M-1 1L1 -1M-1 7L7 -1M5 7L7 5", "a"};
  case Cell::OnlySecond:
    return {"#56b4e9", "M-1 5L1 7M-1 -1L7 7M5 -1L7 1", "b"};
  case Cell::Differs:
    return {"#f0e442", "M0 3H6M3 0V6", "x"};
  default:
    return {"#ffffff", "", "\u00b7"};
  }
}

CellLook lookOf(Cell cell, const Picture &picture) {
  if (picture.comparesTwo())
    return lookOfDifference(cell);
  switch (cell) {
  case Cell::Partial:
    return {"#f0a202", "", "\u2592"};
  case Cell::Lattice:
    return {"#6fb1e0", "", "\u2593"};
  case Cell::Full:
    return {"#1b4f8a", "", "\u2588"};
  case Cell::Twice:
    return {"#0a1a33", "", "#"};
  default:
    return {"#eeeeee", "", "\u00b7"};
  }
}

std::string describe(Cell cell, const Picture &picture) {
  const bool showsPairs = picture.showsPairs;
  if (picture.comparesTwo() && cell == Cell::Full)
    return showsPairs ? "kept by both" : "the same pairs in both";
  if (picture.comparesTwo() && cell == Cell::Skipped)
    return "kept by neither";
  switch (cell) {
  case Cell::Skipped:
    return showsPairs ? "not kept" : "skipped";
  case Cell::Partial:
    return "partial";
  case Cell::Lattice:
    return "full on its lattice";
  case Cell::Full:
    return showsPairs ? "kept" : "full";
  case Cell::Twice:
    return showsPairs ? "kept by two branches" : "full in two branches";
  case Cell::OnlyFirst:
    return (showsPairs ? "only in " : "more in ") + picture.first;
  case Cell::OnlySecond:
    return (showsPairs ? "only in " : "more in ") + picture.second;
  case Cell::Differs:
    return "some only in " + picture.first + ", some only in " + picture.second;
  }
  return "";
}

} // namespace heddle::views
