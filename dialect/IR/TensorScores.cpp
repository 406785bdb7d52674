// Verifiers and interface methods of bias and relative. Kernels score whole tiles, also the rows and keys beyond the
// ends of the sequence that a tile has room for, so every index is cut to what the tensor has.
#include "dialect/IR/Attn.h"
#include "dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heddle::attn {
namespace {

LogicalResult verifyNumbers(Operation *op, MemRefType type, int64_t rank) {
  if (isOperandType(type) && type.getRank() == rank && !type.getElementType().isInteger())
    return success();
  return op->emitOpError("expected a row-major memref of rank ")
         << rank << " of " << elementList(&ElementTraits::isReal, &ElementTraits::mlirName) << ", got " << type;
}

Value least(const ScoreFrame &frame, Value a, Value b) { return frame.make<arith::MinSIOp>(a, b); }
Value most(const ScoreFrame &frame, Value a, Value b) { return frame.make<arith::MaxSIOp>(a, b); }
Value difference(const ScoreFrame &frame, Value a, Value b) { return frame.make<arith::SubIOp>(a, b); }

/// position - origin, cut to 0 <= index < length.
Value indexOf(const ScoreFrame &frame, Value position, Value origin, Value length) {
  Value last = difference(frame, length, frame.integer(1));
  return least(frame, difference(frame, position, origin), last);
}

/// A tensor of scores may have more than 2^31 elements.
Value wide(const ScoreFrame &frame, Value integer) {
  return arith::IndexCastOp::create(frame.builder, frame.loc, frame.builder.getIndexType(), integer);
}

/// One dimension of a row-major tensor: its extent and the index along it, both i32.
struct Dimension {
  Value extent, index;
};

/// The place of an element among all of them; dimensions with one element are not among `axes`.
Value placeOf(const ScoreFrame &frame, ArrayRef<Dimension> axes) {
  Value place = arith::ConstantIndexOp::create(frame.builder, frame.loc, 0);
  for (const Dimension &axis : axes) {
    Value rows = frame.make<arith::MulIOp>(place, wide(frame, axis.extent));
    place = frame.make<arith::AddIOp>(rows, wide(frame, axis.index));
  }
  return place;
}

Value addElement(const ScoreFrame &frame, Value score, Value tensor, Value place) {
  return frame.add(score, loadOperand(frame.builder, frame.loc, tensor, *frame.arguments, place));
}

Value oneOf(const ScoreFrame &frame, Value tensor, Value argument) {
  return tensor == argument ? frame.real(1) : Value();
}

} // namespace

//===-- bias ------------------------------------------------------------------===//

LogicalResult BiasOp::verify() {
  auto type = cast<MemRefType>(getTensor().getType());
  if (failed(verifyNumbers(*this, type, 4)))
    return failure();
  for (auto [dimension, extent] : llvm::enumerate(type.getShape()))
    if (extent != 1 && !ShapedType::isDynamic(extent))
      return emitOpError("expected dimension ") << dimension << " to be ? or 1, got " << extent;
  return success();
}

OperandUse BiasOp::getOperandUse(unsigned) {
  if (areParts((*this)->getParentOfType<PatternOp>()))
    return {{Extent::Batch, Extent::Heads, Extent::Rows, Extent::Columns}};
  return {{Extent::Batch, Extent::Heads, Extent::SeqlenQ, Extent::SeqlenK}};
}

Value BiasOp::buildPlace(const ScoreFrame &frame, Value) {
  auto pattern = (*this)->getParentOfType<PatternOp>();
  auto type = cast<MemRefType>(getTensor().getType());
  SmallVector<Dimension> axes;
  auto append = [&](unsigned dimension, Value extent, llvm::function_ref<Value()> index) {
    if (type.isDynamicDim(dimension))
      axes.push_back({extent, index()});
  };
  Value rows = frame.seqlenQ, columns = frame.seqlenK, firstKey = frame.kOrigin, keys = frame.seqlenK;
  if (areParts(pattern)) { // columns are positions of the whole
    rows = frame.arguments->lengths.lookup(getTensor());
    columns = frame.arguments->values.lookup(pattern.getArgument(columnsArgument(pattern)));
    firstKey = frame.integer(0), keys = frame.make<arith::AddIOp>(frame.kOrigin, frame.seqlenK);
  }
  append(0, frame.seqlenQ, [&] { return frame.batch; }); // the extent of the first dimension is multiplied by 0
  append(1, frame.heads, [&] { return frame.head; });
  append(2, rows, [&] { return indexOf(frame, frame.callQ, frame.qOrigin, frame.seqlenQ); });
  append(3, columns, [&] { return indexOf(frame, frame.callK, firstKey, keys); });
  return placeOf(frame, axes);
}

Value BiasOp::buildScore(const ScoreFrame &frame, Value score) {
  return addElement(frame, score, getTensor(), buildPlace(frame, getTensor()));
}

Value BiasOp::buildDerivative(const ScoreFrame &frame, Value) { return frame.real(1); }
Value BiasOp::buildArgumentDerivative(const ScoreFrame &frame, Value, Value argument) {
  return oneOf(frame, getTensor(), argument);
}
std::string BiasOp::inWords() { return "bias"; }

//===-- relative --------------------------------------------------------------===//

LogicalResult RelativeOp::verify() {
  auto type = cast<MemRefType>(getTable().getType());
  if (failed(verifyNumbers(*this, type, 2)))
    return failure();
  if (int64_t heads = type.getDimSize(0); heads != 1 && !ShapedType::isDynamic(heads))
    return emitOpError("expected dimension 0, heads, to be ? or 1, got ") << heads;
  if (type.getDimSize(1) == 0)
    return emitOpError("expected a table with at least one entry");
  return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"offset"}, 0);
}

OperandUse RelativeOp::getOperandUse(unsigned) { return {{Extent::Heads, Extent::Length}}; }

Value RelativeOp::buildPlace(const ScoreFrame &frame, Value) {
  auto type = cast<MemRefType>(getTable().getType());
  Value entries = type.isDynamicDim(1) ? frame.arguments->lengths.lookup(getTable())
                                       : frame.integer(static_cast<int32_t>(type.getDimSize(1)));
  Sizes sizes{getDynamicSizes(), getSizes()};
  Value offset = sizes.dynamicSize(0) ? frame.arguments->values.lookup(sizes.dynamicSize(0))
                                      : frame.integer(static_cast<int32_t>(sizes.values[0]));
  // Cut before it is moved: distance + offset may be beyond 32 bits.
  Value lowest = difference(frame, frame.integer(0), offset);
  Value highest = difference(frame, difference(frame, entries, frame.integer(1)), offset);
  Value within = least(frame, most(frame, difference(frame, frame.q, frame.k), lowest), highest);
  Value entry = frame.make<arith::AddIOp>(within, offset);
  SmallVector<Dimension> axes;
  if (type.isDynamicDim(0))
    axes.push_back({frame.heads, frame.head});
  axes.push_back({entries, entry});
  return placeOf(frame, axes);
}

Value RelativeOp::buildScore(const ScoreFrame &frame, Value score) {
  return addElement(frame, score, getTable(), buildPlace(frame, getTable()));
}

Value RelativeOp::buildDerivative(const ScoreFrame &frame, Value) { return frame.real(1); }
Value RelativeOp::buildArgumentDerivative(const ScoreFrame &frame, Value, Value argument) {
  return oneOf(frame, getTable(), argument);
}
PositionUse RelativeOp::positionUse() { return PositionUse::Distance; }
std::string RelativeOp::inWords() { return "relative"; }

} // namespace heddle::attn
