#include "compiler/Views/PieceWords.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/Geometry/ExprProgram.h"
#include "dialect/Geometry/RowTiles.h"

#include <algorithm>

namespace heddle::views {

using namespace heddle::attn;

/// In the first cell of every loop.
static int64_t valueInFirstCell(const IntExpr &expr, const ProblemSizes &sizes, int64_t head) {
  ExprProgram program;
  unsigned slot = program.add(expr);
  PlainDomain domain{&sizes.tensors};
  std::vector<int64_t> slots;
  program.run(domain, [&](Symbol symbol) { return symbolValue(sizes, head, symbol); }, slots);
  return slots[slot];
}

std::optional<int64_t> valueOf(const IntExpr &expr, const ProblemSizes &sizes, int64_t head) {
  if (!expr || expr.dependsOn(Symbol::Cell) || expr.dependsOn(Symbol::TileFirst) || expr.dependsOn(Symbol::TileLast) ||
      expr.readsTensors())
    return std::nullopt;
  return valueInFirstCell(expr, sizes, head);
}

namespace {

class Words {
public:
  Words(const ProblemSizes &sizes, int64_t head) : sizes(sizes), head(head) {}

  std::string of(const Piece &piece) {
    diagonal(piece);
    for (const CellLoop &cell : piece.cells)
      add(cell.isEven() ? "inside segments of " + length(cell.span) : std::string("inside documents"));
    for (const CellBand &band : piece.bands)
      blocks(band);
    bounds("queries", piece.q, piece.cells, sizes.qOrigin, sizes.qOrigin + sizes.seqlenQ - 1);
    bounds("keys", piece.k, piece.cells, sizes.kOrigin, sizes.kOrigin + sizes.seqlenK - 1);
    lattice("queries", piece.qLattice);
    lattice("keys", piece.kLattice);
    lattice("key - query", piece.tie);
    classes("queries", piece.qCells);
    classes("keys", piece.kCells);
    if (piece.list)
      list(*piece.list);
    if (piece.masked)
      add("where the predicate says so");
    return text.empty() ? "every pair" : text;
  }

private:
  void add(const std::string &part) { text += (text.empty() ? "" : ", ") + part; }

  std::string length(const IntExpr &span) {
    std::optional<int64_t> value = valueOf(span, sizes, head);
    return value ? std::to_string(*value) : "varying length";
  }

  void diagonal(const Piece &piece) {
    std::optional<int64_t> lower = valueOf(piece.diagonal.lower, sizes, head);
    std::optional<int64_t> upper = valueOf(piece.diagonal.upper, sizes, head);
    int64_t low = sizes.kOrigin - (sizes.qOrigin + sizes.seqlenQ - 1),
            high = sizes.kOrigin + sizes.seqlenK - 1 - sizes.qOrigin;
    bool isLow = lower && *lower > low, isHigh = upper && *upper < high;
    if (isLow && isHigh)
      add("keys from " + place(*lower) + " to " + place(*upper));
    else if (isLow)
      add("keys from " + place(*lower) + " on");
    else if (isHigh)
      add("keys up to " + place(*upper));
  }

  void blocks(const CellBand &band) {
    if (!band.loop.isEven())
      return add(band.steps.lower ? "keys of later documents" : "keys of earlier documents");
    std::optional<int64_t> lower = valueOf(band.steps.lower, sizes, head),
                           upper = valueOf(band.steps.upper, sizes, head);
    auto offset = [](int64_t steps) {
      return steps == 0 ? std::string("the query's block")
                        : std::to_string(std::abs(steps)) + (std::abs(steps) == 1 ? " block " : " blocks ") +
                              (steps < 0 ? "before" : "after");
    };
    const std::string words = "in blocks of " + length(band.loop.span) + ": keys";
    if (lower && lower == upper)
      add(words + " " + offset(*lower));
    else if (lower && upper)
      add(words + " from " + offset(*lower) + " to " + offset(*upper));
    else if (lower)
      add(words + " from " + offset(*lower) + " on");
    else if (upper)
      add(words + " up to " + offset(*upper));
  }

  void classes(const std::string &axis, const std::vector<CellClass> &cells) {
    for (const CellClass &cell : cells)
      add(axis + " in blocks of " + length(cell.loop.span) + " = " +
          std::to_string(valueInFirstCell(cell.residue, sizes, head)) + " mod " + std::to_string(cell.modulus));
  }

  void list(const CellList &cells) {
    std::vector<int64_t> arguments;
    for (const IntExpr &argument : cells.arguments)
      arguments.push_back(valueInFirstCell(argument, sizes, head));
    const std::string span = length(cells.loop.span);
    add("keys in a list: " + cells.rule->inWords(arguments, span == "1" ? "keys" : "blocks of " + span));
  }

  static std::string place(int64_t offset) {
    if (offset == 0)
      return "the query itself";
    return std::to_string(std::abs(offset)) + (offset < 0 ? " before the query" : " after the query");
  }

  void bounds(const std::string &axis, const Interval &interval, const std::vector<CellLoop> &cells, int64_t first,
              int64_t last) {
    int64_t lower = first, upper = last;
    bool isBoundInCell = false;
    for (const IntExpr &term : lowerTerms(interval))
      if (std::optional<int64_t> value = valueOf(term, sizes, head))
        lower = std::max(lower, *value);
      else
        isBoundInCell |= !isEdge(term, cells);
    for (const IntExpr &term : upperTerms(interval))
      if (std::optional<int64_t> value = valueOf(term, sizes, head))
        upper = std::min(upper, *value);
      else
        isBoundInCell |= !isEdge(term, cells);
    if (lower > first && upper < last)
      add(axis + " " + std::to_string(lower) + " to " + std::to_string(upper));
    else if (lower > first)
      add(axis + " from " + std::to_string(lower) + " on");
    else if (upper < last)
      add(axis + " up to " + std::to_string(upper));
    if (isBoundInCell)
      add(axis + (cells.empty()           ? " bounded by what a tensor holds"
                  : cells.back().isEven() ? " bounded within the segment"
                                          : " bounded within the document"));
  }

  /// The segment's own first or last position.
  static bool isEdge(const IntExpr &term, const std::vector<CellLoop> &cells) {
    return std::any_of(cells.begin(), cells.end(), [&](const CellLoop &cell) {
      return term == cell.start(cell.q) || term == cell.last(cell.q) || term == cell.start(cell.k) ||
             term == cell.last(cell.k);
    });
  }

  void lattice(const std::string &axis, const std::vector<Congruence> &congruences) {
    for (const Congruence &congruence : congruences) {
      int64_t modulus = congruence.modulus, residue = valueInFirstCell(congruence.residue, sizes, head);
      add(axis + " = " + std::to_string(residue - floorDivide(residue, modulus) * modulus) + " mod " +
          std::to_string(modulus) + (congruence.residue.dependsOn(Symbol::Cell) ? " from the segment's start" : ""));
    }
  }

  const ProblemSizes &sizes;
  int64_t head;
  std::string text;
};

} // namespace

std::string inWords(const Piece &piece, const ProblemSizes &sizes, int64_t head) {
  return Words(sizes, head).of(piece);
}

} // namespace heddle::views
