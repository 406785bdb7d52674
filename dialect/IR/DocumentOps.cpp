// Verifier, pieces and predicate of documents: cells whose starts are entries of tensors. What the tensors must hold is
// in DocumentTensors.cpp.
#include "dialect/IR/DocumentTensors.h"

using namespace mlir;

namespace heddle::attn {
namespace {

MaskOpInterface definition(Value mask) { return mask.getDefiningOp<MaskOpInterface>(); }
unsigned argumentOf(Value tensor) { return cast<BlockArgument>(tensor).getArgNumber(); }
int64_t entriesOf(Value tensor) { return cast<MemRefType>(tensor.getType()).getDimSize(0); }

Value keyOffsets(DocumentsOp op) { return DocumentTensors::of(op).keyOffsets(); }
bool countsRows(DocumentsOp op) { return DocumentTensors::of(op).countRows(); }

IntExpr countExpr(DocumentsOp op) {
  const IntExpr offsetsQ = DocumentTensors::lengthOf(op.getOffsetsQ());
  const IntExpr count = min(offsetsQ, DocumentTensors::lengthOf(keyOffsets(op))) - 1;
  return op.getUsed() ? min(count, DocumentTensors::lengthOf(op.getUsed())) : count;
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

DocumentOperands DocumentsOp::documents() { return {getOffsetsQ(), getOffsetsK(), getUsed()}; }
PullbackPlace DocumentsOp::place() { return {}; }

LogicalResult DocumentsOp::verify() { return DocumentTensors::of(*this).verify(); }

std::string DocumentsOp::checkTensors(const TensorCall &call) { return DocumentTensors::of(*this).check(call); }
std::vector<int64_t> DocumentsOp::makeTensor(unsigned index, const TensorCall &call, uint64_t seed) {
  return DocumentTensors::of(*this).make(getOperation()->getOperand(index), call, seed);
}

bool DocumentsOp::countsPositions() { return true; }

OperandUse DocumentsOp::getOperandUse(unsigned index) {
  return DocumentTensors::of(*this).useOf(getOperation()->getOperand(index));
}

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

Value DocumentReader::load(Value argument, Value index) const {
  return loadEntry(frame.builder, frame.loc, tensor(argument), index);
}

Value DocumentReader::count() const {
  auto lengthOf = [&](Value argument) {
    const int64_t entries = entriesOf(argument);
    return ShapedType::isDynamic(entries) ? frame.arguments->lengths.lookup(argument) : frame.constant(entries);
  };
  Value one = frame.constant(1), count = lengthOf(tensors.offsetsQ);
  if (tensors.offsetsK)
    count = frame.min(count, lengthOf(tensors.offsetsK));
  count = frame.sub(count, one);
  return tensors.used ? frame.min(count, lengthOf(tensors.used)) : count;
}

Value DocumentReader::documentOfQuery() const {
  Value documents = count(), asked = row();
  return callSearch(frame.builder, frame.loc, tensor(tensors.offsetsQ), asked, documents);
}

std::pair<Value, Value> DocumentReader::placeIn(Value document) const {
  Value firstQ = load(tensors.offsetsQ, document), firstK = load(tensors.keyOffsets(), document);
  Value q = frame.sub(row(), firstQ), k = frame.sub(frame.k, firstK);
  if (!tensors.countRows())
    return {q, k};
  Value next = frame.add(document, frame.constant(1));
  Value queries = frame.sub(load(tensors.offsetsQ, next), firstQ);
  Value keys = tensors.used ? load(tensors.used, document) : frame.sub(load(tensors.keyOffsets(), next), firstK);
  return {frame.add(q, frame.sub(keys, queries)), k};
}

Value DocumentsOp::buildPredicate(PredicateFrame &frame) {
  const DocumentTensors tensors = DocumentTensors::of(*this);
  const DocumentReader reader{tensors, frame};
  auto load = [&](Value argument, Value index) { return reader.load(argument, index); };
  Value count = reader.count(), row = reader.row(), one = frame.constant(1);
  Value searched = reader.tensor(frame.isOfKey ? tensors.keyOffsets() : tensors.offsetsQ);
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
  if (tensors.countRows()) {
    inner.q = frame.add(inner.q, frame.sub(keys, inner.extentQ));
    inner.extentQ = keys;
  }
  Value isOfOne = frame.both(hasRow, isInside);
  return frame.both(isOfOne, definition(getOperand()).buildPredicate(inner));
}

} // namespace heddle::attn
