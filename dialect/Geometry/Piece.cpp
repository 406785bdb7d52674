#include "dialect/Geometry/Piece.h"

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

void append(std::vector<CellBand> &to, const std::vector<CellBand> &from) {
  for (const CellBand &band : from) {
    auto known =
        std::find_if(to.begin(), to.end(), [&](const CellBand &other) { return other.loop.cell == band.loop.cell; });
    if (known == to.end())
      to.push_back(band);
    else
      known->steps.intersect(band.steps);
  }
}

void append(std::vector<CellClass> &to, const std::vector<CellClass> &from) {
  for (const CellClass &fresh : from) {
    bool known = std::any_of(to.begin(), to.end(), [&](const CellClass &other) {
      return other.loop.cell == fresh.loop.cell && other.modulus == fresh.modulus && other.residue == fresh.residue;
    });
    if (!known)
      to.push_back(fresh);
  }
}

bool areAlike(const CellList &a, const CellList &b) {
  return a.loop.cell == b.loop.cell && a.rule == b.rule && a.arguments == b.arguments;
}

/// A piece follows one list; for another one the pairs are asked.
void meetList(Piece &piece, const std::optional<CellList> &other) {
  if (!other || (piece.list && areAlike(*piece.list, *other)))
    return;
  if (!piece.list) {
    piece.list = other;
    return;
  }
  piece.masked = true;
  if (piece.reason.empty())
    piece.reason = "it meets two lists";
}

IntExpr negated(const IntExpr &expr) { return expr ? IntExpr(0) - expr : IntExpr(); }
Interval mirrored(const Interval &interval) { return {negated(interval.upper), negated(interval.lower)}; }

} // namespace

IntExpr CellLoop::start(const CellAxis &axis) const {
  IntExpr number = symbol(Symbol::Cell, cell);
  return isEven() ? axis.base + number * span : axis.base + entry(*axis.starts, number);
}

IntExpr CellLoop::last(const CellAxis &axis) const {
  return isEven() ? start(axis) + span - 1 : startAfter(axis, 1) - 1;
}

/// Multiples of a span that sizes were cut for (Frame::cut).
static bool fits(const IntExpr &steps, const IntExpr &span) {
  return span.constant() && (steps.constant() || kFarthest % *span.constant() == 0);
}

IntExpr CellLoop::startAfter(const CellAxis &axis, const IntExpr &steps) const {
  if (!isEven())
    return axis.base + entry(*axis.starts, symbol(Symbol::Cell, cell) + steps);
  IntExpr position = start(axis) + steps * span;
  return fits(steps, span) || steps == IntExpr(1) ? position : attn::cut(position);
}

IntExpr CellLoop::lastAfter(const CellAxis &axis, const IntExpr &steps) const {
  if (!isEven())
    return startAfter(axis, steps + 1) - 1;
  IntExpr position = last(axis) + steps * span;
  return fits(steps, span) || steps == IntExpr(-1) ? position : attn::cut(position);
}

IntExpr CellLoop::cellAt(const CellAxis &axis, const IntExpr &position) const {
  return isEven() ? floorDiv(position - axis.base, span) : search(*axis.starts, position - axis.base, count);
}

IntExpr CellLoop::holdsAll(const CellAxis &axis, const IntExpr &first, const IntExpr &last) const {
  return both(lessEqual(axis.base + entry(*axis.starts, 0), first), less(last, axis.base + entry(*axis.starts, count)));
}

void appendCells(std::vector<CellLoop> &to, const std::vector<CellLoop> &from) {
  for (const CellLoop &loop : from) {
    auto place = std::lower_bound(to.begin(), to.end(), loop,
                                  [](const CellLoop &a, const CellLoop &b) { return a.cell < b.cell; });
    if (place == to.end() || place->cell != loop.cell)
      to.insert(place, loop);
  }
}

CellList CellList::transposed() const {
  CellList result = *this;
  result.loop = loop.transposed();
  result.rule = rule->transposed(result.arguments);
  return result;
}

Piece Piece::transposed() const {
  Piece result = *this;
  std::swap(result.q, result.k);
  std::swap(result.qLattice, result.kLattice);
  std::swap(result.qCells, result.kCells);
  for (CellLoop &loop : result.cells)
    loop = loop.transposed();
  for (std::vector<CellClass> *classes : {&result.qCells, &result.kCells})
    for (CellClass &cells : *classes)
      cells.loop = cells.loop.transposed();
  if (result.list)
    result.list = result.list->transposed();
  for (CellBand &band : result.bands) {
    band.loop = band.loop.transposed();
    band.steps = mirrored(band.steps);
  }
  result.diagonal = mirrored(diagonal);
  for (Congruence &congruence : result.tie)
    congruence.residue = negated(congruence.residue);
  return result;
}

Piece intersect(const Piece &a, const Piece &b) {
  Piece result = a;
  appendCells(result.cells, b.cells);
  append(result.bands, b.bands);
  append(result.qCells, b.qCells);
  append(result.kCells, b.kCells);
  meetList(result, b.list);
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

bool Frame::isWide() const {
  auto positions = step().constant();
  return !isFine() && (!positions || kFarthest % *positions != 0);
}

IntExpr Frame::cut(const IntExpr &size) const {
  return min(size, step().constant() ? ceilDiv(kFarthest, step()) : IntExpr(kFarthest));
}

IntExpr Frame::reach(const IntExpr &size) const { return isFine() ? min(size, kFarthest / rate) : cut(size); }

IntExpr Frame::bound(const IntExpr &position, const IntExpr &local) const {
  return isWide() && !(local.constant() && step().constant()) ? attn::cut(position) : position;
}

IntExpr Frame::positions(const IntExpr &size) const { return bound(size * step(), size); }

Frame Frame::inBlocks(const IntExpr &size) const {
  Frame inner = *this;
  const IntExpr counted = cut(size), wider = width * counted;
  inner.width = isWide() ? min(attn::cut(wider), ceilDiv(kFarthest, rate)) : wider;
  inner.extentQ = ceilDiv(extentQ, counted);
  inner.extentK = ceilDiv(extentK, counted);
  return inner;
}

IntExpr Frame::first(Interval Piece::*axis, const IntExpr &local) const {
  return bound((axis == &Piece::q ? baseQ : baseK) + local * step(), local);
}

IntExpr Frame::last(Interval Piece::*axis, const IntExpr &local) const {
  if (isFine())
    return first(axis, local);
  return bound((axis == &Piece::q ? baseQ : baseK) + (local + 1) * step() - rate, local);
}

Piece Frame::band(const Interval &steps) const {
  Piece piece = region;
  if (isFine()) {
    IntExpr apart = baseK - baseQ;
    auto scaled = [&](const IntExpr &bound) { return bound ? bound * IntExpr(rate) + apart : IntExpr(); };
    piece.diagonal.intersect({scaled(steps.lower), scaled(steps.upper)});
    return piece;
  }
  Piece inBand;
  inBand.bands = {{blocks(), steps}};
  return intersect(piece, inBand);
}

CellLoop CellTable::get(CellLoop wanted) {
  for (const CellLoop &loop : known)
    if (loop.q == wanted.q && loop.k == wanted.k && loop.span == wanted.span && loop.count == wanted.count)
      return loop;
  wanted.cell = static_cast<unsigned>(known.size());
  known.push_back(wanted);
  return wanted;
}

} // namespace heddle::attn
