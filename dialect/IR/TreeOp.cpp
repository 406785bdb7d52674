// Verifier and interface methods of tree.
#include "dialect/IR/Attn.h"
#include "dialect/IR/MaskPieces.h"
#include "dialect/IR/Operands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle::attn {
namespace {

constexpr int64_t kMostTokens = 64;

unsigned argumentOf(TreeOp op) { return cast<BlockArgument>(op.getAncestors()).getArgNumber(); }
int64_t entriesOf(TreeOp op) { return cast<MemRefType>(op.getAncestors().getType()).getDimSize(0); }

IntExpr tokensExpr(TreeOp op) {
  return ShapedType::isDynamic(entriesOf(op)) ? symbol(Symbol::Parameter, argumentOf(op)) : IntExpr(entriesOf(op));
}

/// The first draft token on either axis, in local coordinates.
struct Draft {
  Draft(TreeOp op, const Frame &frame)
      : firstQ(frame.extentQ - tokensExpr(op)), firstK(frame.extentK - tokensExpr(op)) {}
  IntExpr firstQ, firstK;
};

/// The pairs of draft tokens, of which the tensor keeps some.
Piece square(TreeOp op, const Frame &frame) {
  const Draft draft(op, frame);
  Piece piece = maskedPiece(frame, op, "which draft token sees which is asked pair by pair");
  piece.q.intersect({frame.first(&Piece::q, draft.firstQ), {}});
  piece.k.intersect({frame.first(&Piece::k, draft.firstK), {}});
  return piece;
}

} // namespace

LogicalResult TreeOp::verify() {
  auto type = cast<MemRefType>(getAncestors().getType());
  if (!isOperandType(type) || type.getRank() != 1 || !type.getElementType().isInteger(64))
    return emitOpError("expected a row-major memref of rank 1 of i64, got ") << type;
  if (type.hasStaticShape() && (type.getDimSize(0) < 1 || type.getDimSize(0) > kMostTokens))
    return emitOpError("expected 1 to ") << kMostTokens << " draft tokens, got " << type;
  return success();
}

int64_t TreeOp::fewQueries() { return kMostTokens; }
bool TreeOp::countsPositions() { return true; }
OperandUse TreeOp::getOperandUse(unsigned) {
  const IntExpr ofCall = min(symbol(Symbol::SeqlenQ), symbol(Symbol::SeqlenK));
  return {{Extent::Length},
          {1, max(1, min(kMostTokens, ofCall)), "draft token",
           "at most " + std::to_string(kMostTokens) + " and no more than the call has queries or keys"}};
}

void TreeOp::pieces(const Frame &frame, PieceList &out) {
  Piece before = frame.region;
  before.k.intersect({{}, frame.last(&Piece::k, Draft(*this, frame).firstK - 1)});
  out.push_back(before);
  out.push_back(square(*this, frame));
}

void TreeOp::complement(const Frame &frame, PieceList &out) {
  const Draft draft(*this, frame);
  Piece others = frame.region; // queries before the draft tokens
  others.q.intersect({{}, frame.last(&Piece::q, draft.firstQ - 1)});
  others.k.intersect({frame.first(&Piece::k, draft.firstK), {}});
  out.push_back(others);
  out.push_back(square(*this, frame));
}

/// Rows and keys beyond the ends of the sequence are asked for too: tokens are cut to those that there are.
Value TreeOp::buildPredicate(PredicateFrame &frame) {
  const int64_t entries = entriesOf(*this);
  Value tokens =
      ShapedType::isDynamic(entries) ? frame.arguments->lengths.lookup(getAncestors()) : frame.constant(entries);
  Value firstQ = frame.sub(frame.extentQ, tokens), firstK = frame.sub(frame.extentK, tokens);
  Value zero = frame.constant(0), one = frame.constant(1), lastToken = frame.sub(tokens, one);
  Value query = frame.sub(frame.q, firstQ), key = frame.sub(frame.k, firstK);
  auto within = [&](Value token, Value last) {
    Value cut = frame.min(token, last);
    return frame.max(cut, zero);
  };
  Value row = within(query, lastToken), bit = within(key, frame.constant(kMostTokens - 1));
  Value firstWord = frame.add(row, row);
  Value place = frame.add(firstWord, arith::ShRSIOp::create(frame.builder, frame.loc, bit, frame.constant(5)));
  Value word = loadEntry(frame.builder, frame.loc, frame.arguments->values.lookup(getAncestors()), place);
  Value inWord = arith::AndIOp::create(frame.builder, frame.loc, bit, frame.constant(31));
  Value shifted = arith::ShRUIOp::create(frame.builder, frame.loc, word, inWord);
  Value kept = arith::AndIOp::create(frame.builder, frame.loc, shifted, one);
  Value isAncestor = frame.equal(kept, one), isDraft = frame.lessEqual(zero, query);
  Value sees = frame.both(isDraft, isAncestor);
  return frame.either(frame.less(frame.k, firstK), sees);
}

/// Every token is the child of one before it, or of the last token that is no guess.
std::vector<int64_t> TreeOp::makeTensor(unsigned, const TensorCall &call, uint64_t seed) {
  const int64_t entries = entriesOf(*this);
  const int64_t tokens = ShapedType::isDynamic(entries)
                             ? std::max<int64_t>(1, std::min({call.seqlenQ, call.seqlenK, kMostTokens}))
                             : entries;
  std::vector<int64_t> ancestors;
  uint64_t state = seed;
  for (int64_t token = 0; token < tokens; ++token) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const int64_t parent = int64_t((state >> 33) % uint64_t(token + 1)) - 1;
    ancestors.push_back((parent < 0 ? 0 : ancestors[size_t(parent)]) | int64_t(uint64_t(1) << token));
  }
  return ancestors;
}

} // namespace heddle::attn
