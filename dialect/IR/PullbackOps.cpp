// Verifiers and interface methods of segment, dilate and blocks. Each maps the frame and adds its guard.
#include "dialect/Geometry/CellList.h"
#include "dialect/Geometry/Lattice.h"
#include "dialect/IR/Attn.h"
#include "dialect/IR/MaskPieces.h"
#include "dialect/IR/Sizes.h"

#include <algorithm>

using namespace mlir;

namespace heddle::attn {
namespace {
MaskOpInterface definition(Value mask) { return mask.getDefiningOp<MaskOpInterface>(); }
} // namespace

//===-- segment ---------------------------------------------------------------===//

LogicalResult SegmentOp::verify() {
  return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"length"}, leastSize());
}
int64_t SegmentOp::leastSize() { return 1; }
PullbackPlace SegmentOp::place() {
  PullbackPlace place;
  place.stride = 1;
  place.segment = Sizes{getDynamicSizes(), getSizes()}.bound(0);
  return place;
}

namespace {
/// Segments of a frame, and the frame inside one.
struct Segments {
  Segments(SegmentOp op, const Frame &outer) : inner(outer) {
    IntExpr length = outer.cut(Sizes{op.getDynamicSizes(), op.getSizes()}.expr(0));
    loop = outer.cells->get(outer.evenCells(outer.positions(length)));
    IntExpr index = symbol(Symbol::Cell, loop.cell);
    Piece cell;
    cell.cells = {loop};
    cell.q = {loop.start(loop.q), loop.last(loop.q)};
    cell.k = {loop.start(loop.k), loop.last(loop.k)};
    inner.region = intersect(outer.region, cell);
    inner.baseQ = loop.start(loop.q);
    inner.baseK = loop.start(loop.k);
    inner.hasNegative = false;
    inner.extentQ = min(length, outer.extentQ - index * length);
    inner.extentK = min(length, outer.extentK - index * length);
  }
  Frame inner;
  CellLoop loop;
};
} // namespace

void SegmentOp::pieces(const Frame &frame, PieceList &out) {
  definition(getOperand()).pieces(Segments(*this, frame).inner, out);
}
void SegmentOp::complement(const Frame &frame, PieceList &out) {
  Segments segments(*this, frame);
  definition(getOperand()).complement(segments.inner, out);
  for (const Interval &steps : {Interval{{}, -1}, Interval{1, {}}}) {
    Piece elsewhere;
    elsewhere.bands = {{segments.loop, steps}};
    out.push_back(intersect(frame.region, elsewhere));
  }
}
Value SegmentOp::buildPredicate(PredicateFrame &frame) {
  Value length = Sizes{getDynamicSizes(), getSizes()}.value(0, frame);
  Value ofQ = frame.floorDiv(frame.q, length), ofK = frame.floorDiv(frame.k, length);
  Value same = frame.equal(ofQ, ofK), start = frame.mul(frame.isOfKey ? ofK : ofQ, length);
  PredicateFrame inner = frame;
  inner.q = frame.sub(frame.q, start);
  inner.k = frame.sub(frame.k, start);
  Value end = frame.add(start, length); // fits where extent - start of a long segment before position 0 does not
  inner.extentQ = frame.sub(frame.min(frame.extentQ, end), start);
  inner.extentK = frame.sub(frame.min(frame.extentK, end), start);
  return frame.both(same, definition(getOperand()).buildPredicate(inner));
}

//===-- dilate ----------------------------------------------------------------===//

LogicalResult DilateOp::verify() { return verifyOffset(*this, getRate(), getAt(), getRule()); }
Operation *DilateOp::inGroup(int64_t group) { return withOffsetOf(*this, group); }
ResidueClass DilateOp::residues() { return {int64_t(getRate()), getAt(), getRule() == OffsetRule::every}; }
PullbackPlace DilateOp::place() {
  PullbackPlace place;
  place.isIdentity = getRate() == 1;
  place.stride = int64_t(getRate());
  return place;
}

namespace {
/// The residue classes of a frame that a dilation keeps, and the frame of one of them.
struct Dilation {
  Dilation(DilateOp op, const Frame &outer) : inner(outer), rate(op.getRate()), fullRate(outer.rate * op.getRate()) {
    every = op.getRule() == OffsetRule::every;
    IntExpr row = symbol(Symbol::TileFirst);
    offset = every ? mod(floorDiv(row - outer.baseQ, outer.rate), rate)
                   : offsetExpr(rate, op.getAt(), op.getRule(), outer.group);
    inner.baseQ = outer.first(&Piece::q, offset);
    inner.baseK = outer.first(&Piece::k, offset);
    apart = outer.baseK - outer.baseQ;
    inner.rate = fullRate;
    inner.extentQ = ceilDiv(outer.extentQ - offset, rate);
    inner.extentK = ceilDiv(outer.extentK - offset, rate);
    inner.region = sameClass(outer.region, 0, 0);
  }
  /// Rows in the kept class (shifted), keys `keyShift` steps of the outer frame away from the row's class.
  Piece sameClass(Piece piece, int64_t rowShift, std::optional<int64_t> keyShift) const {
    if (fullRate == 1)
      return piece;
    int64_t step = fullRate / rate;
    if (!every)
      piece.qLattice.push_back({fullRate, inner.baseQ + rowShift * step});
    if (keyShift)
      piece.tie.push_back({fullRate, *keyShift * step + apart});
    return piece;
  }
  Frame inner;
  int64_t rate, fullRate;
  bool every;
  IntExpr offset, apart;
};
} // namespace

/// Why there is no closed form in this frame; null if there is one.
static const char *whyOpaque(DilateOp op, const Frame &frame) {
  if (op.getRate() == 1)
    return nullptr;
  if (!frame.isFine())
    return "it thins out blocks";
  // the class of a tile's rows is that of one axis only
  if (op.getRule() == OffsetRule::every && frame.baseQ != frame.baseK)
    return "a residue class of queries is not that of keys";
  return nullptr;
}

namespace {

/// Blocks from one end of the call to the other: no key lies further from a query, before or after it.
Interval farthestBlocks(const IntExpr &span) {
  IntExpr firstRow = symbol(Symbol::QOrigin), lastRow = firstRow + symbol(Symbol::SeqlenQ) - 1;
  IntExpr firstKey = symbol(Symbol::KOrigin), lastKey = firstKey + symbol(Symbol::SeqlenK) - 1;
  return {IntExpr(-1) - floorDiv(lastRow - firstKey, span), floorDiv(lastKey - firstRow, span) + 1};
}

/// As many blocks as so many steps, cut where they would reach beyond every position.
IntExpr blocksOf(const IntExpr &steps, int64_t rate, const IntExpr &span) {
  if (!steps)
    return {};
  const int64_t most = kFarthest / (span.constant().value_or(1) * rate);
  return max(min(steps, most), -most) * rate;
}

/// The piece is a band, and nothing else.
bool isBand(const Piece &piece) {
  const bool isBounded = piece.q.lower || piece.q.upper || piece.k.lower || piece.k.upper;
  const bool hasLattice = !piece.qLattice.empty() || !piece.kLattice.empty() || !piece.tie.empty();
  const bool hasCells =
      !piece.cells.empty() || !piece.bands.empty() || !piece.qCells.empty() || !piece.kCells.empty() || piece.list;
  return !isBounded && !hasLattice && !hasCells && !piece.masked;
}

/// The bands of the operand of blocks that are thinned out class by class: block m steps away is block m * rate away.
/// False where the operand is more than bands.
bool thinnedBlocks(DilateOp op, const Frame &frame, PieceList &out) {
  CellTable noCells;
  Frame steps;
  steps.groupOfCount = frame.groupOfCount;
  steps.group = frame.group;
  steps.cells = &noCells;
  steps.extentQ = frame.extentQ;
  steps.extentK = frame.extentK;
  PieceList bands;
  definition(op.getOperand()).pieces(steps, bands);
  if (op.getRule() != OffsetRule::every || frame.baseQ != frame.baseK ||
      !std::all_of(bands.begin(), bands.end(), isBand))
    return false;
  const int64_t rate = op.getRate();
  const Interval farthest = farthestBlocks(frame.step());
  for (const Piece &band : bands) {
    const auto &[first, last] = band.diagonal;
    Piece thinned;
    thinned.bands = {{frame.blocks(), {blocksOf(first, rate, frame.step()), blocksOf(last, rate, frame.step())}}};
    thinned.list = {frame.blocks(),
                    nearCells(),
                    {rate, max(first, ceilDiv(farthest.lower, rate)), min(last, floorDiv(farthest.upper, rate))}};
    out.push_back(intersect(frame.region, thinned));
  }
  return true;
}

} // namespace

void DilateOp::pieces(const Frame &frame, PieceList &out) {
  if (!frame.isFine() && getRate() > 1 && thinnedBlocks(*this, frame, out))
    return;
  if (const char *why = whyOpaque(*this, frame))
    return out.push_back(maskedPiece(frame, *this, why));
  definition(getOperand()).pieces(Dilation(*this, frame).inner, out);
}
void DilateOp::complement(const Frame &frame, PieceList &out) {
  if (const char *why = whyOpaque(*this, frame))
    return out.push_back(maskedPiece(frame, *this, why));
  Dilation dilation(*this, frame);
  definition(getOperand()).complement(dilation.inner, out);
  if (dilation.rate > kMaxComplementRate)
    return out.push_back(
        maskedPiece(frame, *this, "the complement of rate " + Twine(getRate()) + " has too many classes"));
  for (int64_t shift = 1; shift < dilation.rate; ++shift) {
    if (!dilation.every)
      out.push_back(dilation.sameClass(frame.region, shift, std::nullopt));
    out.push_back(dilation.sameClass(frame.region, 0, shift));
  }
}
Value DilateOp::buildPredicate(PredicateFrame &frame) {
  bool every = getRule() == OffsetRule::every;
  Value rate = frame.constant(getRate());
  Value rowClass = frame.mod(frame.q, rate), keyClass = frame.mod(frame.k, rate);
  Value known = frame.isOfKey ? keyClass : rowClass;
  Value offset = every ? known : frame.headExpr(offsetExpr(getRate(), getAt(), getRule(), frame.group));
  Value same = frame.equal(every && frame.isOfKey ? rowClass : keyClass, offset);
  if (!every)
    same = frame.both(frame.equal(rowClass, offset), same);
  PredicateFrame inner = frame;
  inner.q = frame.floorDiv(frame.sub(frame.q, offset), rate);
  inner.k = frame.floorDiv(frame.sub(frame.k, offset), rate);
  Value roundUp = frame.constant(static_cast<int64_t>(getRate()) - 1);
  inner.extentQ = frame.floorDiv(frame.add(frame.sub(frame.extentQ, offset), roundUp), rate);
  inner.extentK = frame.floorDiv(frame.add(frame.sub(frame.extentK, offset), roundUp), rate);
  return frame.both(same, definition(getOperand()).buildPredicate(inner));
}

//===-- blocks ----------------------------------------------------------------===//

LogicalResult BlocksOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"size"}, leastSize()); }
int64_t BlocksOp::leastSize() { return 1; }
PullbackPlace BlocksOp::place() {
  PullbackPlace place;
  place.isGuarded = false;
  place.blockSize = Sizes{getDynamicSizes(), getSizes()}.expr(0);
  return place;
}

/// The frame whose coordinates are blocks.
static Frame blockFrame(BlocksOp op, const Frame &outer) {
  return outer.inBlocks(Sizes{op.getDynamicSizes(), op.getSizes()}.expr(0));
}
void BlocksOp::pieces(const Frame &frame, PieceList &out) {
  definition(getOperand()).pieces(blockFrame(*this, frame), out);
}
void BlocksOp::complement(const Frame &frame, PieceList &out) {
  definition(getOperand()).complement(blockFrame(*this, frame), out);
}
Value BlocksOp::buildPredicate(PredicateFrame &frame) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  Value size = sizes.value(0, frame), one = frame.constant(1);
  auto blocksIn = [&](Value extent) -> Value { // ceilDiv; extent + size - 1 of a run-time size may be beyond 32 bits
    if (!sizes.expr(0).constant())
      return frame.add(frame.floorDiv(frame.sub(extent, one), size), one);
    return frame.floorDiv(frame.add(extent, frame.sub(size, one)), size);
  };
  PredicateFrame inner = frame;
  inner.q = frame.floorDiv(frame.q, size);
  inner.k = frame.floorDiv(frame.k, size);
  inner.extentQ = blocksIn(frame.extentQ);
  inner.extentK = blocksIn(frame.extentK);
  return definition(getOperand()).buildPredicate(inner);
}

} // namespace heddle::attn
