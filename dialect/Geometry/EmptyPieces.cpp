#include "dialect/Geometry/Piece.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// True if upper - lower is a negative constant for some pair of their terms.
bool provablyEmpty(const Interval &interval) {
  const std::vector<IntExpr> lowers = lowerTerms(interval), uppers = upperTerms(interval);
  auto split = [](const IntExpr &bound) -> std::pair<IntExpr, int64_t> {
    const IntExpr &term = bound.get()->op == IntExpr::Cut ? bound.get()->operands[0] : bound;
    if (auto value = term.constant())
      return {IntExpr(), *value};
    const IntExpr::Node *node = term.get();
    if (node->op == IntExpr::Add && node->operands[1].constant())
      return {node->operands[0], *node->operands[1].constant()};
    return {term, 0};
  };
  for (const IntExpr &lower : lowers)
    for (const IntExpr &upper : uppers) {
      auto [lowerRest, lowerConstant] = split(lower);
      auto [upperRest, upperConstant] = split(upper);
      if (lowerRest == upperRest && upperConstant < lowerConstant)
        return true;
    }
  return false;
}

bool contradict(const std::vector<Congruence> &lattice) {
  std::map<int64_t, int64_t> residueOf; // by modulus
  for (const Congruence &congruence : lattice)
    if (auto residue = congruence.residue.constant())
      if (auto [known, isNew] = residueOf.emplace(congruence.modulus, *residue);
          !isNew && (known->second - *residue) % congruence.modulus != 0)
        return true;
  return false;
}

/// Query and key in one cell, or in cells at a distance, that they cannot be in.
bool contradictBands(const Piece &piece) {
  return std::any_of(piece.bands.begin(), piece.bands.end(), [&](const CellBand &band) {
    Interval steps = band.steps;
    for (const CellLoop &loop : piece.cells)
      if (loop.cell == band.loop.cell)
        steps.intersect({0, 0});
    return provablyEmpty(steps);
  });
}

} // namespace

void dropEmpty(PieceList &pieces) {
  pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                              [](const Piece &piece) {
                                return provablyEmpty(piece.q) || provablyEmpty(piece.k) ||
                                       provablyEmpty(piece.diagonal) || contradict(piece.qLattice) ||
                                       contradict(piece.kLattice) || contradict(piece.tie) || contradictBands(piece);
                              }),
               pieces.end());
}

} // namespace heddle::attn
