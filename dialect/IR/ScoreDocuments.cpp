#include "dialect/IR/ScoreDocuments.h"
#include "dialect/IR/ScoreChain.h"

#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace heddle::attn {
namespace {

/// What the chain reads of positions.
PositionUse positionUse(Value scores) {
  PositionUse use = PositionUse::None;
  for (Operation *link : scoreChain(scores))
    use = std::max(use, cast<ScoreOpInterface>(link).positionUse());
  return use;
}

bool makeADifference(const DocumentTensors &documents, PositionUse use) {
  return use == PositionUse::Each || (use == PositionUse::Distance && !documents.keepDistances());
}

ScaledOp startOf(Value scores) { return cast<ScaledOp>(scoreChain(scores).front()); }

/// Those that the branches of the softmax are made of.
SmallVector<DocumentTensors> documentsOfMasks(SoftmaxOp softmax) {
  llvm::SmallSetVector<Operation *, 16> masks;
  for (Value branch : softmax.getBranches())
    masks.insert(branch.getDefiningOp());
  SmallVector<DocumentTensors> documents;
  for (size_t next = 0; next < masks.size(); ++next) {
    if (DocumentTensors own = DocumentTensors::of(cast<MaskOpInterface>(masks[next])))
      documents.push_back(own);
    for (Value operand : masks[next]->getOperands())
      if (Operation *inner = operand.getDefiningOp())
        masks.insert(inner);
  }
  return documents;
}

} // namespace

std::optional<DocumentTensors> documentsOfScores(PatternOp pattern) {
  SoftmaxOp softmax = pattern.getSoftmax();
  const PositionUse use = positionUse(softmax.getScores());
  if (use == PositionUse::None)
    return std::nullopt;
  SmallVector<DocumentTensors> documents = {DocumentTensors::of(startOf(softmax.getScores()))};
  if (!documents[0])
    documents = documentsOfMasks(softmax);
  for (const DocumentTensors &each : documents)
    if (makeADifference(each, use))
      return each;
  return std::nullopt;
}

LogicalResult verifyScoreDocuments(PatternOp pattern) {
  const std::optional<DocumentTensors> chosen = documentsOfScores(pattern);
  SoftmaxOp softmax = pattern.getSoftmax();
  if (!chosen || DocumentTensors::of(startOf(softmax.getScores())))
    return success();
  for (const DocumentTensors &other : documentsOfMasks(softmax))
    if (!other.areThose(*chosen)) {
      auto error = chosen->op->emitOpError("expected all documents to be of the same tensors, as scores read positions "
                                           "inside them; `attn.scaled at` says which scores count in");
      error.attachNote(other.op->getLoc()) << "others are here";
      return error;
    }
  return success();
}

void nameScoreDocuments(PatternOp pattern) {
  SoftmaxOp softmax = pattern.getSoftmax();
  if (!softmax.getScores())
    return;
  const DocumentTensors documents = documentsOfScores(pattern).value_or(DocumentTensors());
  SmallVector<Value> offsets;
  for (Value tensor : {documents.offsetsQ, documents.offsetsK})
    if (tensor)
      offsets.push_back(tensor);
  ScaledOp scaled = startOf(softmax.getScores());
  scaled.getOffsetsMutable().assign(offsets);
  scaled.getUsedMutable().clear();
  if (documents.used)
    scaled.getUsedMutable().assign(documents.used);
}

Value buildScoreDocument(PatternOp pattern, const PredicateFrame &at) {
  const DocumentTensors documents = *documentsOfScores(pattern);
  return DocumentReader{documents, at}.documentOfQuery();
}

void countInDocument(PatternOp pattern, const PredicateFrame &at, Value document, ScoreFrame &frame) {
  const DocumentTensors documents = *documentsOfScores(pattern);
  const DocumentReader reader{documents, at};
  if (positionUse(pattern.getSoftmax().getScores()) == PositionUse::Each) {
    std::tie(frame.q, frame.k) = reader.placeIn(document);
    return;
  }
  // Only how far it is counts: the query moves, once for all of its keys, and the keys stay where they are.
  Value moved = reader.placeIn(document).first;
  frame.q = at.add(moved, reader.load(documents.keyOffsets(), document));
}

} // namespace heddle::attn
