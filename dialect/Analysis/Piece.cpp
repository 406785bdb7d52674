//===- Piece.cpp - intersection and transposition -------------------------===//
#include "dialect/Analysis/Piece.h"

#include <algorithm>

namespace heddle::attn {
namespace {

void append(std::vector<Congruence> &to, const std::vector<Congruence> &from) {
  for (const Congruence &congruence : from) {
    bool known = std::any_of(to.begin(), to.end(), [&](const Congruence &other) {
      return other.modulus == congruence.modulus && other.residue == congruence.residue;
    });
    if (!known)
      to.push_back(congruence);
  }
}

void append(std::vector<CellOrder> &to, const std::vector<CellOrder> &from) {
  for (const CellOrder &order : from) {
    bool known = std::any_of(to.begin(), to.end(), [&](const CellOrder &other) {
      return other.loop.cell == order.loop.cell && other.keyFirst == order.keyFirst;
    });
    if (!known)
      to.push_back(order);
  }
}

IntExpr negated(const IntExpr &expr) { return expr ? IntExpr(0) - expr : IntExpr(); }

} // namespace

void appendCells(std::vector<CellLoop> &to, const std::vector<CellLoop> &from) {
  for (const CellLoop &loop : from) {
    auto place = std::lower_bound(to.begin(), to.end(), loop,
                                  [](const CellLoop &a, const CellLoop &b) { return a.cell < b.cell; });
    if (place == to.end() || place->cell != loop.cell)
      to.insert(place, loop);
  }
}

Piece Piece::transposed() const {
  Piece result = *this;
  std::swap(result.q, result.k);
  std::swap(result.qLattice, result.kLattice);
  for (CellOrder &order : result.orders)
    order.keyFirst = !order.keyFirst;
  result.diagonal = {negated(diagonal.upper), negated(diagonal.lower)};
  for (Congruence &congruence : result.tie)
    congruence.residue = negated(congruence.residue);
  return result;
}

Piece intersect(const Piece &a, const Piece &b) {
  Piece result = a;
  appendCells(result.cells, b.cells);
  append(result.orders, b.orders);
  result.q.intersect(b.q);
  result.k.intersect(b.k);
  result.diagonal.intersect(b.diagonal);
  append(result.qLattice, b.qLattice);
  append(result.kLattice, b.kLattice);
  append(result.tie, b.tie);
  result.masked |= b.masked;
  if (result.reason.empty())
    result.reason = b.reason;
  return result;
}

CellLoop CellTable::get(const IntExpr &base, const IntExpr &span) {
  for (const CellLoop &loop : known)
    if (loop.base == base && loop.span == span)
      return loop;
  known.push_back({static_cast<unsigned>(known.size()), base, span});
  return known.back();
}

} // namespace heddle::attn
