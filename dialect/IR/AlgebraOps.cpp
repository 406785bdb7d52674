// Verifiers, folders and interface methods of and, or, not and heads.
#include "dialect/IR/Attn.h"
#include "dialect/IR/MaskPieces.h"

using namespace mlir;

namespace heddle::attn {
namespace {

LogicalResult verifyNotEmpty(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("expected at least one mask");
  return success();
}

MaskOpInterface definition(Value mask) { return mask.getDefiningOp<MaskOpInterface>(); }

using Describe = void (MaskOpInterface::*)(const Frame &, PieceList &);

void concatenate(ValueRange masks, Describe describe, const Frame &frame, PieceList &out) {
  for (Value mask : masks)
    (definition(mask).*describe)(frame, out);
}

void intersectEach(Operation *op, Describe describe, const Frame &frame, PieceList &out) {
  PieceList product = {frame.region};
  for (Value mask : op->getOperands()) {
    PieceList pieces;
    (definition(mask).*describe)(frame, pieces);
    product = intersectAll(product, pieces, op);
  }
  out.insert(out.end(), product.begin(), product.end());
}

} // namespace

//===-- and, or ---------------------------------------------------------------===//

LogicalResult AndOp::verify() { return verifyNotEmpty(*this); }
OpFoldResult AndOp::fold(FoldAdaptor) { return getMasks().size() == 1 ? getMasks()[0] : Value(); }
void AndOp::pieces(const Frame &frame, PieceList &out) { intersectEach(*this, &MaskOpInterface::pieces, frame, out); }
void AndOp::complement(const Frame &frame, PieceList &out) {
  concatenate(getMasks(), &MaskOpInterface::complement, frame, out);
}
Value AndOp::buildPredicate(PredicateFrame &frame) {
  Value result = definition(getMasks()[0]).buildPredicate(frame);
  for (Value mask : getMasks().drop_front())
    result = frame.both(result, definition(mask).buildPredicate(frame));
  return result;
}

LogicalResult OrOp::verify() { return verifyNotEmpty(*this); }
OpFoldResult OrOp::fold(FoldAdaptor) { return getMasks().size() == 1 ? getMasks()[0] : Value(); }
void OrOp::pieces(const Frame &frame, PieceList &out) { concatenate(getMasks(), &MaskOpInterface::pieces, frame, out); }
void OrOp::complement(const Frame &frame, PieceList &out) {
  intersectEach(*this, &MaskOpInterface::complement, frame, out);
}
Value OrOp::buildPredicate(PredicateFrame &frame) {
  Value result = definition(getMasks()[0]).buildPredicate(frame);
  for (Value mask : getMasks().drop_front())
    result = frame.either(result, definition(mask).buildPredicate(frame));
  return result;
}

//===-- not -------------------------------------------------------------------===//

OpFoldResult NotOp::fold(FoldAdaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return inner.getOperand();
  return {};
}
void NotOp::pieces(const Frame &frame, PieceList &out) { definition(getOperand()).complement(frame, out); }
void NotOp::complement(const Frame &frame, PieceList &out) { definition(getOperand()).pieces(frame, out); }
Value NotOp::buildPredicate(PredicateFrame &frame) {
  Value kept = definition(getOperand()).buildPredicate(frame);
  return frame.equal(kept, frame.boolean(false));
}

//===-- heads -----------------------------------------------------------------===//

LogicalResult HeadsOp::verify() { return verifyNotEmpty(*this); }

static std::pair<MaskOpInterface, Frame> chosenOperand(HeadsOp op, const Frame &frame) {
  Frame inner = frame;
  unsigned group = frame.groupOfCount->at(op.getMasks().size());
  inner.group = group;
  return {definition(op.getMasks()[group]), inner};
}
void HeadsOp::pieces(const Frame &frame, PieceList &out) {
  auto [mask, inner] = chosenOperand(*this, frame);
  mask.pieces(inner, out);
}
void HeadsOp::complement(const Frame &frame, PieceList &out) {
  auto [mask, inner] = chosenOperand(*this, frame);
  mask.complement(inner, out);
}
Value HeadsOp::buildPredicate(PredicateFrame &frame) {
  PredicateFrame inner = frame;
  inner.group = frame.groupOfCount->at(getMasks().size());
  return definition(getMasks()[inner.group]).buildPredicate(inner);
}

} // namespace heddle::attn
