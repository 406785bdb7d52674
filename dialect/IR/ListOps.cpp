// Verifier and interface methods of random.
#include "dialect/Geometry/CellList.h"
#include "dialect/IR/Attn.h"
#include "dialect/IR/ListCalls.h"
#include "dialect/IR/MaskPieces.h"
#include "dialect/IR/Sizes.h"

using namespace mlir;

namespace heddle::attn {

LogicalResult RandomOp::verify() { return verifySizes(*this, {getDynamicSizes(), getSizes()}, {"count", "seed"}, 0); }

/// As a permutation knows it (CellList.h).
static IntExpr headOf(RandomOp op) { return op.getPerHead() ? symbol(Symbol::Head) + 1 : IntExpr(0); }

void RandomOp::pieces(const Frame &frame, PieceList &out) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  Piece listed;
  listed.list = {
      frame.blocks(), randomCells(), {sizes.expr(0), sizes.expr(1), headOf(*this), max(frame.extentQ, frame.extentK)}};
  out.push_back(intersect(frame.region, listed));
}

void RandomOp::complement(const Frame &frame, PieceList &out) {
  out.push_back(maskedPiece(frame, *this, "what random lists leave out is asked pair by pair"));
}

uint32_t RandomOp::leafTerms(MaskTerms &terms) { return terms.unknown(MaskTerms::kLastRank - 1); }

Value RandomOp::buildPredicate(PredicateFrame &frame) {
  Sizes sizes{getDynamicSizes(), getSizes()};
  Value count = sizes.value(0, frame), seed = sizes.value(1, frame);
  Value head = getPerHead() ? frame.add(frame.head, frame.constant(1)) : frame.constant(0);
  Value extent = frame.max(frame.extentQ, frame.extentK);
  return callHas(frame.builder, frame.loc, *randomCells(), {count, seed, head, extent, frame.q, frame.k});
}

} // namespace heddle::attn
