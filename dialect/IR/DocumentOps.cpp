//===- DocumentOps.cpp - masks inside documents ---------------------------===//
// Verifier, pieces and predicate of documents: cells whose starts are entries of tensors. What the tensors must hold is
// in DocumentTensors.cpp.
//===----------------------------------------------------------------------===//
#include "dialect/IR/Attn.h"
#include "dialect/IR/Operands.h"

using namespace mlir;

namespace heddle::attn {
namespace {

MaskOpInterface definition(Value mask) { return mask.getDefiningOp<MaskOpInterface>(); }
unsigned argumentOf(Value tensor) { return cast<BlockArgument>(tensor).getArgNumber(); }
int64_t entriesOf(Value tensor) { return cast<MemRefType>(tensor.getType()).getDimSize(0); }

IntExpr lengthExpr(Value tensor) {
  if (ShapedType::isDynamic(entriesOf(tensor)))
    return symbol(Symbol::Parameter, argumentOf(tensor));
  return entriesOf(tensor);
}

Value keyOffsets(DocumentsOp op) { return op.getOffsetsK() ? op.getOffsetsK() : op.getOffsetsQ(); }

/// Rows are counted from row 0, not from position 0.
bool countsRows(DocumentsOp op) {
  return op->getParentOfType<PatternOp>().getQOrigin() == Origin::end && op.getOffsetsK();
}

IntExpr countExpr(DocumentsOp op) {
  IntExpr count = min(lengthExpr(op.getOffsetsQ()), lengthExpr(keyOffsets(op))) - 1;
  return op.getUsed() ? min(count, lengthExpr(op.getUsed())) : count;
}

/// Documents of a frame, and the frame inside one.
struct Documents {
  Documents(DocumentsOp op, const Frame &outer) : inner(outer) {
    const unsigned q = argumentOf(op.getOffsetsQ()), k = argumentOf(keyOffsets(op));
    IntExpr count = countExpr(op);
    loop = outer.cells->get({0, {countsRows(op) ? symbol(Symbol::QOrigin) : IntExpr(0), q}, {0, k}, {}, count});
    IntExpr number = symbol(Symbol::Cell, loop.cell);
    auto length = [&](unsigned offsets) { return entry(offsets, number + 1) - entry(offsets, number); };
    IntExpr queries = length(q), keys = op.getUsed() ? entry(argumentOf(op.getUsed()), number) : length(k);
    cell.cells = {loop};
    cell.q = {loop.start(loop.q), loop.last(loop.q)};
    cell.k = {loop.start(loop.k), op.getUsed() ? loop.start(loop.k) + keys - 1 : loop.last(loop.k)};
    inner.region = intersect(outer.region, cell);
    const bool isEndAligned = countsRows(op);
    inner.baseQ = isEndAligned ? loop.start(loop.q) + (queries - keys) : loop.start(loop.q);
    inner.baseK = loop.start(loop.k);
    inner.extentQ = isEndAligned ? keys : queries;
    inner.extentK = keys;
    inner.hasNegative = isEndAligned;
  }
  Frame inner;
  CellLoop loop;
  Piece cell;
};

} // namespace

LogicalResult DocumentsOp::verify() {
  for (Value tensor : getOperands().drop_front()) {
    auto type = cast<MemRefType>(tensor.getType());
    if (!isOperandType(type) || type.getRank() != 1 || !type.getElementType().isInteger(32))
      return emitOpError("expected row-major memrefs of rank 1 of i32, got ") << type;
    const bool isOffsets = tensor != getUsed();
    if (type.hasStaticShape() && type.getDimSize(0) < 1 + isOffsets)
      return emitOpError("expected at least ")
             << 1 + isOffsets << (isOffsets ? " offsets, got " : " entry, got ") << type;
  }
  if (getUsed() && !getOffsetsK())
    return emitOpError("expected offsets of the keys beside `used`");
  auto agree = [&](Value a, Value b, int64_t more) {
    return ShapedType::isDynamic(entriesOf(a)) || ShapedType::isDynamic(entriesOf(b)) ||
           entriesOf(a) == entriesOf(b) + more;
  };
  if (!agree(getOffsetsQ(), keyOffsets(*this), 0) || (getUsed() && !agree(getOffsetsQ(), getUsed(), 1)))
    return emitOpError("expected tensors of as many documents, got ") << getOperands().drop_front().getTypes();
  return success();
}

bool DocumentsOp::countsPositions() { return true; }
OperandUse DocumentsOp::getOperandUse(unsigned) { return {{Extent::Length}}; }

void DocumentsOp::pieces(const Frame &frame, PieceList &out) {
  definition(getOperand()).pieces(Documents(*this, frame).inner, out);
}

void DocumentsOp::complement(const Frame &frame, PieceList &out) {
  Documents documents(*this, frame);
  definition(getOperand()).complement(documents.inner, out);
  for (const Interval &steps : {Interval{{}, -1}, Interval{1, {}}}) {
    Piece elsewhere;
    elsewhere.bands = {{documents.loop, steps}};
    out.push_back(intersect(frame.region, elsewhere));
  }
  if (!getUsed())
    return;
  Piece unused = documents.cell;
  unused.k = {documents.cell.k.upper + 1, documents.loop.last(documents.loop.k)};
  out.push_back(intersect(frame.region, unused));
}

std::optional<DocumentRows> DocumentsOp::documentRows() {
  IntExpr begin = entry(argumentOf(getOffsetsQ()), symbol(Symbol::Cell));
  return DocumentRows{countExpr(*this), countsRows(*this) ? begin : begin - symbol(Symbol::QOrigin)};
}

Value DocumentsOp::buildPredicate(PredicateFrame &frame) {
  auto tensor = [&](Value argument) { return frame.arguments->values.lookup(argument); };
  auto load = [&](Value argument, Value index) { return loadEntry(frame.builder, frame.loc, tensor(argument), index); };
  auto lengthOf = [&](Value argument) {
    const int64_t entries = entriesOf(argument);
    return ShapedType::isDynamic(entries) ? frame.arguments->lengths.lookup(argument) : frame.constant(entries);
  };
  Value one = frame.constant(1), ofQ = lengthOf(getOffsetsQ()), count = ofQ;
  if (getOffsetsK())
    count = frame.min(count, lengthOf(getOffsetsK()));
  count = frame.sub(count, one);
  if (getUsed())
    count = frame.min(count, lengthOf(getUsed()));
  Value row = countsRows(*this) ? frame.sub(frame.q, frame.qOrigin) : frame.q;
  Value searched = frame.isOfKey ? tensor(keyOffsets(*this)) : tensor(getOffsetsQ());
  Value number = callSearch(frame.builder, frame.loc, searched, frame.isOfKey ? frame.k : row, count);
  Value next = frame.add(number, one);
  Value firstQ = load(getOffsetsQ(), number), endQ = load(getOffsetsQ(), next);
  Value firstK = load(keyOffsets(*this), number), endK = load(keyOffsets(*this), next), keys = frame.sub(endK, firstK);
  if (getUsed()) {
    keys = load(getUsed(), number);
    endK = frame.add(firstK, keys);
  }
  Value isBehind = frame.lessEqual(firstQ, row), hasRow = frame.both(isBehind, frame.less(row, endQ));
  Value hasKey = frame.lessEqual(firstK, frame.k), isInside = frame.both(hasKey, frame.less(frame.k, endK));
  PredicateFrame inner = frame;
  inner.q = frame.sub(row, firstQ);
  inner.k = frame.sub(frame.k, firstK);
  inner.extentQ = frame.sub(endQ, firstQ);
  inner.extentK = keys;
  if (countsRows(*this)) {
    inner.q = frame.add(inner.q, frame.sub(keys, inner.extentQ));
    inner.extentQ = keys;
  }
  Value isOfOne = frame.both(hasRow, isInside);
  return frame.both(isOfOne, definition(getOperand()).buildPredicate(inner));
}

} // namespace heddle::attn
