//===- AnalysisChecks.h - the analysis against brute force ----------------===//
// Compares what the analysis says of every tile of a small problem with the oracle's pairs.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_ANALYSISCHECKS_H
#define HEDDLE_TESTS_ANALYSISCHECKS_H

#include "compiler/Oracle/PatternOracle.h"
#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Geometry/BranchEvaluator.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/Grain.h"
#include "dialect/Geometry/TileVisitor.h"

#include <set>
#include <sstream>

namespace heddle::oracle {

/// What the analysis owes for a branch (docs/language.md, "What exact means").
enum class Exactness {
  Whole,   ///< visited are exactly the non-empty tiles, and these are full
  Exact,   ///< visited and full are exactly the non-empty and the full tiles
  Union,   ///< visited exact; full sound: short by at most two tiles for each pair of pieces, or by what crosses the
           ///< cells of a list
  Superset ///< visited a superset, full a subset
};

inline attn::ProblemSizes toSizes(const Problem &problem) {
  attn::ProblemSizes sizes{problem.heads,   problem.seqlenQ, problem.seqlenK,
                           problem.qOrigin, problem.kOrigin, problem.parameters};
  for (const OperandTensor &tensor : problem.operands) {
    auto entries = std::make_shared<std::vector<int64_t>>();
    for (int64_t i = 0; tensor && tensor.element == DType::i32 && i < tensor.elements(); ++i)
      entries->push_back(tensor.integer(i));
    sizes.tensors.push_back(tensor ? entries : nullptr);
  }
  return sizes;
}

/// The kept pairs of one head and branch, as rows x columns of one direction.
struct Pairs {
  int64_t rows, columns, rowOrigin, columnOrigin;
  std::vector<char> kept;
  bool at(int64_t row, int64_t column) const { return kept[row * columns + column]; }
};

inline Pairs pairsOf(PatternOracle &oracle, const Problem &problem, unsigned branch, int64_t head,
                     attn::Direction direction) {
  bool forward = direction == attn::Direction::Forward;
  Pairs pairs{forward ? problem.seqlenQ : problem.seqlenK,
              forward ? problem.seqlenK : problem.seqlenQ,
              forward ? problem.qOrigin : problem.kOrigin,
              forward ? problem.kOrigin : problem.qOrigin,
              {}};
  for (int64_t row = 0; row < pairs.rows; ++row)
    for (int64_t column = 0; column < pairs.columns; ++column)
      pairs.kept.push_back(forward ? oracle.keeps(branch, head, row, column) : oracle.keeps(branch, head, column, row));
  return pairs;
}

inline std::set<int64_t> tilesOf(const std::vector<attn::TileRun> &runs) {
  std::set<int64_t> tiles;
  for (const attn::TileRun &run : runs)
    for (int64_t tile = run.begin; tile < run.end; ++tile)
      tiles.insert(tile);
  return tiles;
}

/// One branch of one head of a pattern whose squares a band cuts.
struct TilesInBand {
  const attn::VariantRanges &ranges;
  unsigned branch;
  const Problem &problem;
  int64_t head;
  const Pairs &pairs;
  int64_t lower, upper; ///< of key - query

  std::string check(int64_t side) const {
    for (int64_t rowClass = 0; rowClass < std::min(ranges.rowRate, pairs.rows); ++rowClass)
      for (int64_t index = 0; rowClass + ranges.rowRate * index * side < pairs.rows; ++index) {
        const attn::TileVisit visit = attn::TileVisitor(ranges, branch, attn::Direction::Forward, toSizes(problem))
                                          .visit(head, {rowClass, index, side}, side);
        for (int64_t tile : tilesOf(visit.visited))
          if (std::string account = checkTile(rowClass, index, tile, side, tilesOf(visit.full).count(tile) != 0);
              !account.empty())
            return account;
      }
    return {};
  }

private:
  /// Columns of the branch begin at a multiple of their rate, or the pattern had no grain.
  std::string checkTile(int64_t rowClass, int64_t index, int64_t tile, int64_t side, bool isFull) const {
    const int64_t rate = ranges.branches[branch].columnRate;
    for (int64_t residue = 0; residue < rate; ++residue)
      for (int64_t r = index * side; r < (index + 1) * side && rowClass + ranges.rowRate * r < pairs.rows; ++r)
        for (int64_t c = tile * side; c < (tile + 1) * side && residue + rate * c < pairs.columns; ++c) {
          const int64_t row = rowClass + ranges.rowRate * r, column = residue + rate * c,
                        ahead = column + pairs.columnOrigin - row - pairs.rowOrigin;
          const bool isInBand = ahead >= lower && ahead <= upper;
          if (rate == 1 ? pairs.at(row, column) != isInBand || (isFull && !isInBand)
                        : pairs.at(row, column) && !isInBand)
            return "row " + std::to_string(row) + ", key " + std::to_string(column) + " of side " +
                   std::to_string(side) + (isFull ? ", full" : "");
        }
    return {};
  }
};

/// Checks one branch of one head; returns an account of the first disagreement, empty if there is none.
class BranchCheck {
public:
  BranchCheck(const attn::VariantRanges &variant, unsigned branch, attn::Direction direction, const Problem &problem,
              int64_t head, const Pairs &pairs, Exactness exactness)
      : variant(variant), branch(branch), direction(direction), problem(problem), head(head), pairs(pairs),
        exactness(exactness) {}

  std::string run(attn::TileShape shape, attn::TileCounts &counts) {
    for (int64_t rowClass = 0; rowClass < std::min(variant.rowRate, pairs.rows); ++rowClass) {
      int64_t rows = (pairs.rows - rowClass - 1) / variant.rowRate + 1;
      for (int64_t tile = 0; tile * shape.rows < rows; ++tile) {
        std::string account = checkTile({rowClass, tile, shape.rows}, rows, shape.columns, counts);
        if (!account.empty())
          return account;
      }
    }
    return {};
  }

private:
  std::string checkTile(attn::RowTile tile, int64_t rowsInClass, int64_t columnsPerTile, attn::TileCounts &counts) {
    const attn::ProblemSizes sizes = toSizes(problem);
    const attn::TileVisitor visitor(variant, branch, direction, sizes);
    const attn::TileVisit visit = visitor.visit(head, tile, columnsPerTile);
    std::set<int64_t> visited = tilesOf(visit.visited), full = tilesOf(visit.full);
    counts.visited += visited.size();
    counts.full += full.size();
    int64_t rate = variant.branches[branch].columnRate;
    int64_t residue =
        visitor.columnResidue(head, pairs.rowOrigin + tile.rowClass + variant.rowRate * tile.block * tile.index);
    int64_t columns = pairs.columns > residue ? (pairs.columns - residue - 1) / rate + 1 : 0;
    std::set<int64_t> wantVisited, wantFull;
    int64_t endRow = std::min(rowsInClass, (tile.index + 1) * tile.block), reached = 0, kept = 0;
    for (int64_t t = 0; t * columnsPerTile < columns; ++t) {
      int64_t here = 0, total = 0;
      for (int64_t r = tile.index * tile.block; r < endRow; ++r)
        for (int64_t c = t * columnsPerTile; c < std::min(columns, (t + 1) * columnsPerTile); ++c, ++total)
          here += pairs.at(tile.rowClass + variant.rowRate * r, residue + rate * c);
      reached += here;
      if (here > 0)
        wantVisited.insert(t);
      if (here == total)
        wantFull.insert(t);
    }
    for (int64_t r = tile.index * tile.block; r < endRow; ++r)
      for (int64_t c = 0; c < pairs.columns; ++c)
        kept += pairs.at(tile.rowClass + variant.rowRate * r, c);
    if (kept != reached)
      return describe(tile, "kept pairs outside the key class", {}, {});
    return compare(tile, visited, full, wantVisited, wantFull);
  }

  std::string compare(attn::RowTile tile, const std::set<int64_t> &visited, const std::set<int64_t> &full,
                      const std::set<int64_t> &wantVisited, const std::set<int64_t> &wantFull) {
    auto includes = [](const std::set<int64_t> &big, const std::set<int64_t> &small) {
      return std::includes(big.begin(), big.end(), small.begin(), small.end());
    };
    if (exactness == Exactness::Superset ? !includes(visited, wantVisited) : visited != wantVisited)
      return describe(tile, "visited", visited, wantVisited);
    if (exactness == Exactness::Exact ? full != wantFull : !includes(wantFull, full))
      return describe(tile, "full", full, wantFull);
    if (exactness == Exactness::Whole && visited != wantFull)
      return describe(tile, "visited and whole", visited, wantFull);
    return {};
  }

  std::string describe(attn::RowTile tile, const char *what, const std::set<int64_t> &got,
                       const std::set<int64_t> &want) {
    std::ostringstream text;
    text << what << " of row tile " << tile.index << " (class " << tile.rowClass << " of " << variant.rowRate << ", "
         << tile.block << " rows), head " << head << ", branch " << branch
         << (direction == attn::Direction::Forward ? ", forward" : ", transposed") << ": got {";
    for (int64_t t : got)
      text << ' ' << t;
    text << " }, expected {";
    for (int64_t t : want)
      text << ' ' << t;
    text << " }; problem heads " << problem.heads << " q " << problem.seqlenQ << " k " << problem.seqlenK << " origins "
         << problem.qOrigin << ' ' << problem.kOrigin;
    return text.str();
  }

  const attn::VariantRanges &variant;
  unsigned branch;
  attn::Direction direction;
  const Problem &problem;
  int64_t head;
  const Pairs &pairs;
  Exactness exactness;
};

/// What is owed for a branch that the caller does not know more about.
inline Exactness owed(const attn::Variant &variant, unsigned branch, attn::Direction direction,
                      int64_t columnsPerTile) {
  const attn::VariantRanges &ranges = direction == attn::Direction::Forward ? variant.forward : variant.transposed;
  const attn::BranchRanges &columns = ranges.branches[branch];
  if (columns.masked || columns.mayVisitGaps || columnsPerTile < columns.exactFromColumns)
    return Exactness::Superset;
  const attn::PieceList &pieces = variant.branches[branch];
  const bool hasList = std::any_of(pieces.begin(), pieces.end(), [](const attn::Piece &piece) { return piece.list; });
  return pieces.size() <= 1 && !hasList ? Exactness::Exact : Exactness::Union;
}

/// All heads, branches, both directions, one tile shape; also that the closed-form sums equal the enumeration.
inline std::string checkPattern(attn::PatternOp pattern, const attn::PatternAnalysis &analysis, const Problem &problem,
                                attn::TileShape shape) {
  PatternOracle oracle(pattern, problem);
  attn::WideInt keptPairs = 0;
  for (attn::Direction direction : {attn::Direction::Forward, attn::Direction::Transposed}) {
    attn::TileCounts counts;
    for (int64_t head = 0; head < problem.heads; ++head) {
      const attn::Variant &variant = analysis.variants[attn::variantOf(analysis, toSizes(problem), head)];
      const attn::VariantRanges &ranges = direction == attn::Direction::Forward ? variant.forward : variant.transposed;
      for (unsigned branch = 0; branch < oracle.branchCount(); ++branch) {
        Pairs pairs = pairsOf(oracle, problem, branch, head, direction);
        if (direction == attn::Direction::Forward)
          keptPairs += std::count(pairs.kept.begin(), pairs.kept.end(), 1);
        BranchCheck check(ranges, branch, direction, problem, head, pairs,
                          owed(variant, branch, direction, shape.columns));
        std::string account = check.run(shape, counts);
        if (!account.empty())
          return account;
      }
    }
    attn::TileCounts sums = attn::countTiles(analysis, toSizes(problem), shape, direction);
    if (sums.visited != counts.visited || sums.full != counts.full)
      return "summed tiles " + attn::toString(sums.visited) + " / " + attn::toString(sums.full) + ", enumerated " +
             attn::toString(counts.visited) + " / " + attn::toString(counts.full);
  }
  std::optional<attn::WideInt> pairs = attn::countPairs(analysis, toSizes(problem));
  if (pairs && *pairs != keptPairs)
    return "counted pairs " + attn::toString(*pairs) + ", enumerated " + attn::toString(keptPairs);
  return {};
}

/// That every visited tile of `side` rows and columns is kept whole, which a pattern owes where `side` divides its
/// grain.
inline std::string checkWholeTiles(attn::PatternOp pattern, const attn::PatternAnalysis &analysis,
                                   const Problem &problem, int64_t side) {
  PatternOracle oracle(pattern, problem);
  for (int64_t head = 0; head < problem.heads; ++head)
    for (unsigned branch = 0; branch < oracle.branchCount(); ++branch) {
      const attn::Direction forward = attn::Direction::Forward;
      const Pairs pairs = pairsOf(oracle, problem, branch, head, forward);
      const attn::VariantRanges &ranges = analysis.variants[attn::variantOf(analysis, toSizes(problem), head)].forward;
      attn::TileCounts counts;
      std::string account =
          BranchCheck(ranges, branch, forward, problem, head, pairs, Exactness::Whole).run({side, side}, counts);
      if (!account.empty())
        return account;
    }
  return {};
}

/// The value of a bound that no tile and no cell has a part in.
inline int64_t valueOf(const attn::IntExpr &bound, const Problem &problem, int64_t head) {
  attn::ExprProgram program;
  const unsigned slot = program.add(bound);
  attn::PlainDomain domain;
  std::vector<int64_t> slots;
  auto valueOfSymbol = [&](attn::Symbol symbol) -> int64_t {
    using S = attn::Symbol;
    return symbol.kind == S::Parameter ? problem.parameters[symbol.index]
           : symbol.kind == S::Head    ? head
           : symbol.kind == S::Heads   ? problem.heads
           : symbol.kind == S::SeqlenQ ? problem.seqlenQ
           : symbol.kind == S::SeqlenK ? problem.seqlenK
           : symbol.kind == S::QOrigin ? problem.qOrigin
                                       : problem.kOrigin;
  };
  program.run(domain, valueOfSymbol, slots);
  return slots[slot];
}

/// That of every visited tile of `side` rows and columns exactly the pairs in the band are kept, which a pattern owes
/// where `side` divides its banded grain; and that tiles that are called full lie in the band.
inline std::string checkTilesInBand(attn::PatternOp pattern, const attn::PatternAnalysis &analysis,
                                    const attn::BandedGrain &banded, const Problem &problem, int64_t side) {
  PatternOracle oracle(pattern, problem);
  for (int64_t head = 0; head < problem.heads; ++head) {
    const unsigned variant = attn::variantOf(analysis, toSizes(problem), head);
    const attn::VariantRanges &ranges = analysis.variants[variant].forward;
    for (unsigned branch = 0; branch < oracle.branchCount(); ++branch) {
      const attn::Interval &band = banded.bands[variant][branch];
      const int64_t lower = band.lower ? valueOf(band.lower, problem, head) : INT64_MIN;
      const int64_t upper = band.upper ? valueOf(band.upper, problem, head) : INT64_MAX;
      const Pairs pairs = pairsOf(oracle, problem, branch, head, attn::Direction::Forward);
      std::string account = TilesInBand{ranges, branch, problem, head, pairs, lower, upper}.check(side);
      if (!account.empty())
        return account;
    }
  }
  return {};
}

} // namespace heddle::oracle

#endif
