// Verifiers and interface methods of full, causal, window, rows, cols, box, prefix, stride and predicate.
#include "dialect/Geometry/Lattice.h"
#include "dialect/IR/Attn.h"
#include "dialect/IR/MaskPieces.h"
#include "dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heddle::attn {
namespace {

Piece with(const Frame &frame, Interval Piece::*axis, Interval bounds) {
  Piece piece = frame.region;
  (piece.*axis).intersect(bounds);
  return piece;
}

/// Local coordinates in [0, first) or [extent - last, extent), on one axis.
void edgePieces(const Frame &frame, Interval Piece::*axis, const Sizes &sizes, const IntExpr &extent, PieceList &out) {
  IntExpr first = frame.cut(sizes.expr(0)), last = frame.cut(sizes.expr(1));
  if (first != IntExpr(0))
    out.push_back(with(frame, axis, {frame.first(axis, 0), frame.last(axis, first - 1)}));
  if (last != IntExpr(0))
    out.push_back(with(frame, axis, {frame.first(axis, max(extent - last, 0)), {}}));
}

void betweenEdges(const Frame &frame, Interval Piece::*axis, const Sizes &sizes, const IntExpr &extent,
                  PieceList &out) {
  IntExpr first = frame.cut(sizes.expr(0)), last = frame.cut(sizes.expr(1));
  out.push_back(with(frame, axis, {frame.first(axis, max(first, 0)), frame.last(axis, extent - last - 1)}));
  if (frame.hasNegative)
    out.push_back(with(frame, axis, {{}, frame.last(axis, -1)}));
}

Value atEdges(PredicateFrame &frame, const Sizes &sizes, Value coordinate, Value extent) {
  // One comparison for each edge, with bounds that loops over coordinates do not compute again.
  Value zero = frame.constant(0), result;
  if (sizes.expr(0) != IntExpr(0))
    result = frame.lessUnsigned(coordinate, frame.max(sizes.value(0, frame), zero));
  if (sizes.expr(1) != IntExpr(0)) {
    Value isLast = frame.lessEqual(frame.max(frame.sub(extent, sizes.value(1, frame)), zero), coordinate);
    result = result ? frame.either(result, isLast) : isLast;
  }
  return result ? result : frame.boolean(false);
}

MaskTerms::Set edgeTerms(MaskTerms &terms, const Sizes &sizes, Axis axis) {
  const MaskTerms::Set first = terms.first(axis, sizes.bound(0));
  return terms.either(first, terms.last(axis, sizes.bound(1)));
}

} // namespace

//===-- full ----------------------------------------------------------------===//

void FullOp::pieces(const Frame &frame, PieceList &out) { out.push_back(frame.region); }
void FullOp::complement(const Frame &, PieceList &) {}
Value FullOp::buildPredicate(PredicateFrame &frame) { return frame.boolean(true); }
uint32_t FullOp::leafTerms(MaskTerms &terms) { return terms.all(); }

//===-- causal --------------------------------------------------------------===//

void CausalOp::pieces(const Frame &frame, PieceList &out) { out.push_back(frame.band({{}, 0})); }
void CausalOp::complement(const Frame &frame, PieceList &out) { out.push_back(frame.band({1, {}})); }
Value CausalOp::buildPredicate(PredicateFrame &frame) { return frame.lessEqual(frame.k, frame.q); }
uint32_t CausalOp::leafTerms(MaskTerms &terms) { return terms.upTo({}); }

//===-- window --------------------------------------------------------------===//

LogicalResult WindowOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"left", "right"}, 0); }
void WindowOp::pieces(const Frame &frame, PieceList &out) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  out.push_back(frame.band({IntExpr(0) - frame.reach(sizes.expr(0)), frame.reach(sizes.expr(1))}));
}
void WindowOp::complement(const Frame &frame, PieceList &out) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  out.push_back(frame.band({{}, IntExpr(0) - (frame.reach(sizes.expr(0)) + 1)}));
  out.push_back(frame.band({frame.reach(sizes.expr(1)) + 1, {}}));
}
Value WindowOp::buildPredicate(PredicateFrame &frame) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  Value left = sizes.value(0, frame), right = sizes.value(1, frame);
  Value ahead = frame.sub(frame.k, frame.q);
  Value isNear = frame.lessEqual(frame.sub(frame.constant(0), left), ahead);
  return frame.both(isNear, frame.lessEqual(ahead, right));
}
uint32_t WindowOp::leafTerms(MaskTerms &terms) {
  const Sizes sizes{getDynamicSizes(), getSizes()};
  const SizeBound left = sizes.bound(0), right = sizes.bound(1);
  auto isFar = [](const SizeBound &size) { return size.isLiteral() && size.constant >= kFarthest; };
  const MaskTerms::Set isNear = isFar(left) ? terms.all() : terms.complement(terms.upTo(left.negatedLess(1)));
  return isFar(right) ? isNear : terms.both(isNear, terms.upTo(right));
}

//===-- rows and cols ---------------------------------------------------------===//

LogicalResult RowsOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"first", "last"}, 0); }
void RowsOp::pieces(const Frame &frame, PieceList &out) {
  edgePieces(frame, &Piece::q, {getDynamicSizes(), getSizes()}, frame.extentQ, out);
}
void RowsOp::complement(const Frame &frame, PieceList &out) {
  betweenEdges(frame, &Piece::q, {getDynamicSizes(), getSizes()}, frame.extentQ, out);
}
Value RowsOp::buildPredicate(PredicateFrame &frame) {
  return atEdges(frame, {getDynamicSizes(), getSizes()}, frame.q, frame.extentQ);
}
uint32_t RowsOp::leafTerms(MaskTerms &terms) { return edgeTerms(terms, {getDynamicSizes(), getSizes()}, Axis::q); }

LogicalResult ColsOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"first", "last"}, 0); }
void ColsOp::pieces(const Frame &frame, PieceList &out) {
  edgePieces(frame, &Piece::k, {getDynamicSizes(), getSizes()}, frame.extentK, out);
}
void ColsOp::complement(const Frame &frame, PieceList &out) {
  betweenEdges(frame, &Piece::k, {getDynamicSizes(), getSizes()}, frame.extentK, out);
}
Value ColsOp::buildPredicate(PredicateFrame &frame) {
  return atEdges(frame, {getDynamicSizes(), getSizes()}, frame.k, frame.extentK);
}
uint32_t ColsOp::leafTerms(MaskTerms &terms) { return edgeTerms(terms, {getDynamicSizes(), getSizes()}, Axis::k); }

//===-- box -------------------------------------------------------------------===//

LogicalResult BoxOp::verify() {
  Sizes sizes{getDynamicSizes(), getSizes()};
  if (failed(verifySizes(*this, sizes, {"first_q", "end_q", "first_k", "end_k"}, 0)))
    return failure();
  for (auto [first, axis] : {std::pair(0u, "q"), std::pair(2u, "k")}) {
    auto from = sizes.expr(first).constant(), to = sizes.expr(first + 1).constant();
    if (from && to && *from > *to)
      return emitOpError("expected first_") << axis << " <= end_" << axis << ", got " << *from << " > " << *to;
  }
  return success();
}
void BoxOp::pieces(const Frame &frame, PieceList &out) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  Piece box = frame.region;
  auto bound = [&](unsigned index) { return frame.cut(sizes.expr(index)); };
  box.q.intersect({frame.first(&Piece::q, bound(0)), frame.last(&Piece::q, bound(1) - 1)});
  box.k.intersect({frame.first(&Piece::k, bound(2)), frame.last(&Piece::k, bound(3) - 1)});
  out.push_back(box);
}
void BoxOp::complement(const Frame &frame, PieceList &out) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  for (auto [axis, first] : {std::pair(&Piece::q, 0u), std::pair(&Piece::k, 2u)}) {
    out.push_back(with(frame, axis, {{}, frame.last(axis, frame.cut(sizes.expr(first)) - 1)}));
    out.push_back(with(frame, axis, {frame.first(axis, frame.cut(sizes.expr(first + 1))), {}}));
  }
}
Value BoxOp::buildPredicate(PredicateFrame &frame) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  auto inside = [&](Value coordinate, unsigned first) {
    Value isBehind = frame.lessEqual(sizes.value(first, frame), coordinate);
    return frame.both(isBehind, frame.less(coordinate, sizes.value(first + 1, frame)));
  };
  Value hasRow = inside(frame.q, 0);
  return frame.both(hasRow, inside(frame.k, 2));
}
uint32_t BoxOp::leafTerms(MaskTerms &terms) {
  const Sizes sizes{getDynamicSizes(), getSizes()};
  auto inside = [&](Axis axis, unsigned first) {
    const MaskTerms::Set before = terms.first(axis, sizes.bound(first));
    return terms.both(terms.first(axis, sizes.bound(first + 1)), terms.complement(before));
  };
  const MaskTerms::Set rows = inside(Axis::q, 0);
  return terms.both(rows, inside(Axis::k, 2));
}

//===-- prefix ----------------------------------------------------------------===//

LogicalResult PrefixOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"length"}, 0); }
void PrefixOp::pieces(const Frame &frame, PieceList &out) {
  IntExpr length = frame.cut(Sizes{getDynamicSizes(), getSizes()}.expr(0));
  out.push_back(frame.band({{}, 0}));
  if (length != IntExpr(0))
    out.push_back(with(frame, &Piece::k, {{}, frame.last(&Piece::k, length - 1)}));
}
void PrefixOp::complement(const Frame &frame, PieceList &out) {
  Piece after = frame.band({1, {}});
  after.k.intersect({frame.first(&Piece::k, frame.cut(Sizes{getDynamicSizes(), getSizes()}.expr(0))), {}});
  out.push_back(after);
}
Value PrefixOp::buildPredicate(PredicateFrame &frame) {
  Value length = Sizes{getDynamicSizes(), getSizes()}.value(0, frame);
  Value isCausal = frame.lessEqual(frame.k, frame.q);
  return frame.either(isCausal, frame.less(frame.k, length));
}
uint32_t PrefixOp::leafTerms(MaskTerms &terms) { return terms.prefix(Sizes{getDynamicSizes(), getSizes()}.bound(0)); }

//===-- stride --------------------------------------------------------------===//

LogicalResult StrideOp::verify() {
  if (getRule() == OffsetRule::every)
    return emitOpError("expected one residue class, `rule(every)` keeps all of them");
  return verifyOffset(*this, getRate(), getAt(), getRule());
}

/// The frame's region where `axis` is in residue class offset + shift.
static Piece stridePiece(StrideOp op, const Frame &frame, int64_t shift) {
  Piece piece = frame.region;
  int64_t rate = op.getRate();
  IntExpr offset = offsetExpr(rate, op.getAt(), op.getRule(), frame.group);
  if (shift)
    offset = mod(offset + shift, rate);
  const bool isQuery = op.getAxis() == Axis::q;
  if (rate == 1)
    return piece;
  if (!frame.isFine())
    (isQuery ? piece.qCells : piece.kCells).push_back({frame.blocks(), rate, offset});
  else
    (isQuery ? piece.qLattice : piece.kLattice)
        .push_back({frame.rate * rate, frame.first(isQuery ? &Piece::q : &Piece::k, offset)});
  return piece;
}

void StrideOp::pieces(const Frame &frame, PieceList &out) { out.push_back(stridePiece(*this, frame, 0)); }
void StrideOp::complement(const Frame &frame, PieceList &out) {
  if (getRate() > kMaxComplementRate)
    return out.push_back(
        maskedPiece(frame, *this, "the complement of rate " + Twine(getRate()) + " has too many classes"));
  for (int64_t shift = 1; shift < static_cast<int64_t>(getRate()); ++shift)
    out.push_back(stridePiece(*this, frame, shift));
}
Value StrideOp::buildPredicate(PredicateFrame &frame) {
  Value offset = frame.headExpr(offsetExpr(getRate(), getAt(), getRule(), frame.group));
  Value coordinate = getAxis() == Axis::q ? frame.q : frame.k;
  return frame.equal(frame.mod(coordinate, frame.constant(getRate())), offset);
}
ResidueClass StrideOp::residues() { return {int64_t(getRate()), getAt()}; }
Operation *StrideOp::inGroup(int64_t group) { return withOffsetOf(*this, group); }
uint32_t StrideOp::leafTerms(MaskTerms &terms) { return getRate() == 1 ? terms.all() : terms.residue(getAxis()); }

//===-- predicate -------------------------------------------------------------===//

LogicalResult PredicateOp::verifyRegions() {
  Block &block = getBody().front();
  auto isI32 = [](Type type) { return type.isInteger(32); };
  if (block.getNumArguments() != 4 || !llvm::all_of(block.getArgumentTypes(), isI32))
    return emitOpError("expected a region over (batch, head, q, k), each i32");
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("expected the region to end with attn.yield");
  if (!yield.getValue().getType().isInteger(1))
    return yield.emitOpError("expected an i1, got ") << yield.getValue().getType();
  for (Operation &op : block.without_terminator())
    if (!isa_and_nonnull<arith::ArithDialect>(op.getDialect()) || op.getNumRegions() != 0)
      return op.emitOpError("expected an arith op in attn.predicate");
  return success();
}
static constexpr const char *kAsked = "a predicate is asked pair by pair";
void PredicateOp::pieces(const Frame &frame, PieceList &out) { out.push_back(maskedPiece(frame, *this, kAsked)); }
void PredicateOp::complement(const Frame &frame, PieceList &out) { out.push_back(maskedPiece(frame, *this, kAsked)); }
Value PredicateOp::buildPredicate(PredicateFrame &frame) {
  Block &block = getBody().front();
  IRMapping mapping;
  mapping.map(block.getArguments(), ValueRange{frame.batch, frame.head, frame.q, frame.k});
  for (Operation &op : block.without_terminator())
    frame.builder.clone(op, mapping);
  return mapping.lookup(cast<YieldOp>(block.getTerminator()).getValue());
}

} // namespace heddle::attn
