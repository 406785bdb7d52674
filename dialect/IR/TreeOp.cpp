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

unsigned argumentOf(Value tensor) { return cast<BlockArgument>(tensor).getArgNumber(); }
MemRefType typeOf(Value tensor) { return cast<MemRefType>(tensor.getType()); }

/// The trees of a batch: each batch element has its own, or all have one.
bool areOfBatch(TreeOp op) { return typeOf(op.getAncestors()).getRank() > 1; }
/// Of one tree.
int64_t entriesOf(TreeOp op) { return typeOf(op.getAncestors()).getShape().back(); }
/// Each batch element has an entry, or a row, of its own.
bool isOfElements(Value tensor) { return typeOf(tensor).isDynamicDim(0); }

IntExpr entriesExpr(TreeOp op) {
  return ShapedType::isDynamic(entriesOf(op)) ? symbol(Symbol::Parameter, argumentOf(op.getAncestors()))
                                              : IntExpr(entriesOf(op));
}

/// How many draft tokens there are. Whatever the tensor holds, each of them has ancestors.
IntExpr tokensExpr(TreeOp op) {
  if (!op.getDrafts())
    return entriesExpr(op);
  const IntExpr element = isOfElements(op.getDrafts()) ? symbol(Symbol::Batch) : IntExpr(0);
  return max(0, min(entry(argumentOf(op.getDrafts()), element), entriesExpr(op)));
}

/// The first draft token on either axis, in local coordinates.
struct Draft {
  Draft(TreeOp op, const Frame &frame)
      : firstQ(frame.extentQ - tokensExpr(op)), firstK(frame.extentK - tokensExpr(op)) {}
  IntExpr firstQ, firstK;
};

/// Key - query where both are as far from their ends.
IntExpr apartExpr(const Frame &frame) { return frame.extentK - frame.extentQ; }

/// The pairs of draft tokens, of which the tensor keeps some.
Piece square(TreeOp op, const Frame &frame) {
  const Draft draft(op, frame);
  Piece piece = maskedPiece(frame, op, "which draft token sees which is asked pair by pair");
  piece.q.intersect({frame.first(&Piece::q, draft.firstQ), {}});
  piece.k.intersect({frame.first(&Piece::k, draft.firstK), {}});
  return piece;
}

LogicalResult verifyTensor(TreeOp op, Value tensor, int64_t rank, unsigned bits) {
  const MemRefType type = typeOf(tensor);
  if (!isOperandType(type) || type.getRank() != rank || !type.getElementType().isInteger(bits))
    return op.emitOpError("expected a row-major memref of rank ") << rank << " of i" << bits << ", got " << type;
  return success();
}

/// The first dimension of a tensor of a batch.
LogicalResult verifyBatch(TreeOp op, Value tensor, StringRef what) {
  if (const int64_t extent = typeOf(tensor).getDimSize(0); extent != 1 && !ShapedType::isDynamic(extent))
    return op.emitOpError("expected dimension 0 of ") << what << " to be ? or 1, got " << extent;
  return success();
}

} // namespace

LogicalResult TreeOp::verify() {
  const int64_t rank = areOfBatch(*this) ? 2 : 1;
  if (failed(verifyTensor(*this, getAncestors(), rank, 64)))
    return failure();
  if (rank > 1 && failed(verifyBatch(*this, getAncestors(), "the ancestors")))
    return failure();
  if (const int64_t entries = entriesOf(*this);
      !ShapedType::isDynamic(entries) && (entries < 1 || entries > kMostTokens))
    return emitOpError("expected 1 to ") << kMostTokens << " draft tokens, got " << typeOf(getAncestors());
  if (!getDrafts())
    return success();
  if (rank == 1)
    return emitOpError("expected ancestors of each batch element, memref<?x?xi64>, beside `drafts`, got ")
           << typeOf(getAncestors());
  if (failed(verifyTensor(*this, getDrafts(), 1, 32)))
    return failure();
  return verifyBatch(*this, getDrafts(), "the numbers of drafts");
}

int64_t TreeOp::fewQueries() { return kMostTokens; }
bool TreeOp::countsPositions() { return true; }

/// Beside numbers of drafts n is what the tensor has room for; the numbers are what an element has queries and keys for.
OperandUse TreeOp::getOperandUse(unsigned index) {
  OperandUse use{{Extent::Length}};
  if (index != 0) {
    if (isOfElements(getDrafts()))
      use.length = {symbol(Symbol::Batch), symbol(Symbol::Batch), "entry", "one for each batch element"};
    return use;
  }
  if (areOfBatch(*this))
    use.extents = {Extent::Batch, Extent::Length};
  if (getDrafts()) {
    use.length = {1, kMostTokens, "draft token"};
    return use;
  }
  const IntExpr ofCall = min(symbol(Symbol::SeqlenQ), symbol(Symbol::SeqlenK));
  use.length = {1, max(1, min(kMostTokens, ofCall)), "draft token",
                "at most " + std::to_string(kMostTokens) + " and no more than the call has queries or keys"};
  return use;
}

/// In a batch rows before the draft tokens are causal; draft tokens stand behind all keys before them, so the same band
/// cuts none of theirs, and one piece serves both.
void TreeOp::pieces(const Frame &frame, PieceList &out) {
  Piece before = areOfBatch(*this) ? frame.band({{}, apartExpr(frame)}) : frame.region;
  before.k.intersect({{}, frame.last(&Piece::k, Draft(*this, frame).firstK - 1)});
  out.push_back(before);
  out.push_back(square(*this, frame));
}

void TreeOp::complement(const Frame &frame, PieceList &out) {
  const Draft draft(*this, frame);
  Piece others = areOfBatch(*this) ? frame.band({apartExpr(frame) + 1, {}}) : frame.region;
  others.q.intersect({{}, frame.last(&Piece::q, draft.firstQ - 1)}); // queries before the draft tokens
  if (!areOfBatch(*this))
    others.k.intersect({frame.first(&Piece::k, draft.firstK), {}});
  out.push_back(others);
  out.push_back(square(*this, frame));
}

namespace {

/// What a predicate asks of the tensors.
struct TreeReader {
  TreeOp op;
  const PredicateFrame &frame;

  Value load(Value tensor, Value place) const {
    return loadEntry(frame.builder, frame.loc, frame.arguments->values.lookup(tensor), place);
  }
  Value entries() {
    const int64_t entries = entriesOf(op);
    return ShapedType::isDynamic(entries) ? frame.arguments->lengths.lookup(op.getAncestors())
                                          : frame.constant(entries);
  }
  /// As tokensExpr says.
  Value tokens(Value entries) {
    if (!op.getDrafts())
      return entries;
    Value number = load(op.getDrafts(), isOfElements(op.getDrafts()) ? frame.batch : frame.constant(0));
    Value known = frame.min(number, entries);
    return frame.max(known, frame.constant(0));
  }
  /// The first word of the ancestors of a token.
  Value wordOf(Value token, Value entries) {
    if (areOfBatch(op) && isOfElements(op.getAncestors()))
      token = frame.add(frame.mul(frame.batch, entries), token);
    return frame.add(token, token);
  }
};

} // namespace

/// Rows and keys beyond the ends of the sequence are asked for too: tokens are cut to those that there are.
Value TreeOp::buildPredicate(PredicateFrame &frame) {
  TreeReader reader{*this, frame};
  Value entries = reader.entries(), tokens = reader.tokens(entries);
  Value firstQ = frame.sub(frame.extentQ, tokens), firstK = frame.sub(frame.extentK, tokens);
  Value zero = frame.constant(0), one = frame.constant(1), lastToken = frame.sub(entries, one);
  Value query = frame.sub(frame.q, firstQ), key = frame.sub(frame.k, firstK);
  auto within = [&](Value token, Value last) {
    Value cut = frame.min(token, last);
    return frame.max(cut, zero);
  };
  Value row = within(query, lastToken), bit = within(key, frame.constant(kMostTokens - 1));
  Value firstWord = reader.wordOf(row, entries);
  Value place = frame.add(firstWord, arith::ShRSIOp::create(frame.builder, frame.loc, bit, frame.constant(5)));
  Value word = reader.load(getAncestors(), place);
  Value inWord = arith::AndIOp::create(frame.builder, frame.loc, bit, frame.constant(31));
  Value shifted = arith::ShRUIOp::create(frame.builder, frame.loc, word, inWord);
  Value kept = arith::AndIOp::create(frame.builder, frame.loc, shifted, one);
  Value isAncestor = frame.equal(kept, one), isDraft = frame.lessEqual(zero, query);
  Value sees = frame.both(isDraft, isAncestor);
  if (!areOfBatch(*this))
    return frame.either(frame.less(frame.k, firstK), sees);
  Value lastBefore = frame.min(query, frame.constant(-1)); // of one row all keys compare with one number
  return frame.either(frame.lessEqual(key, lastBefore), sees);
}

//===-- what the tensors hold --------------------------------------------------===//

namespace {

/// What an element has room for.
int64_t roomOf(const TensorCall &call) { return std::min({call.seqlenQ, call.seqlenK, kMostTokens}); }

/// Every token is the child of one before it, or of the last token that is no guess.
void appendTree(std::vector<int64_t> &ancestors, int64_t tokens, uint64_t &state) {
  const size_t first = ancestors.size();
  for (int64_t token = 0; token < tokens; ++token) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const int64_t parent = int64_t((state >> 33) % uint64_t(token + 1)) - 1;
    ancestors.push_back((parent < 0 ? 0 : ancestors[first + size_t(parent)]) | int64_t(uint64_t(1) << token));
  }
}

int64_t elementsOf(Value tensor, const TensorCall &call) { return isOfElements(tensor) ? call.batch : 1; }

} // namespace

std::string TreeOp::checkTensors(const TensorCall &call) {
  if (!getDrafts())
    return {};
  const std::vector<int64_t> &numbers = *call.tensors[argumentOf(getDrafts())],
                             &ancestors = *call.tensors[argumentOf(getAncestors())];
  const int64_t trees = std::max<int64_t>(elementsOf(getAncestors(), call), 1);
  const int64_t most = std::min(int64_t(ancestors.size()) / trees, roomOf(call));
  for (size_t element = 0; element < numbers.size(); ++element) {
    const bool isAsked = !call.element || !isOfElements(getDrafts()) || size_t(*call.element) == element;
    if (isAsked && (numbers[element] < 0 || numbers[element] > most))
      return "tensor '" + (*this)->getParentOfType<PatternOp>().getParameterName(argumentOf(getDrafts())).str() +
             "': expected entry " + std::to_string(element) + " to be 0 to " + std::to_string(most) +
             ", no more draft tokens than have ancestors and than there are queries or keys, got " +
             std::to_string(numbers[element]);
  }
  return {};
}

/// Numbers of drafts are half of what there may be, all, none, and any in turn.
std::vector<int64_t> TreeOp::makeTensor(unsigned index, const TensorCall &call, uint64_t seed) {
  const int64_t inType = entriesOf(*this);
  const int64_t tokens = ShapedType::isDynamic(inType) ? std::max<int64_t>(1, roomOf(call)) : inType;
  std::vector<int64_t> made;
  if (index == 0) {
    uint64_t state = seed;
    for (int64_t tree = areOfBatch(*this) ? elementsOf(getAncestors(), call) : 1; tree > 0; --tree)
      appendTree(made, tokens, state);
    return made;
  }
  const int64_t most = std::max<int64_t>(0, std::min(tokens, roomOf(call)));
  for (int64_t element = 0; element < elementsOf(getDrafts(), call); ++element) {
    const int64_t any = int64_t(mixedWord(seed + uint64_t(element)) % uint64_t(most + 1));
    const int64_t inTurn[] = {(most + 1) / 2, most, 0, any};
    made.push_back(inTurn[element % 4]);
  }
  return made;
}

} // namespace heddle::attn
