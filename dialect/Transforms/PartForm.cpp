// Patterns whose calls are parts of a whole.
#include "dialect/IR/DocumentTensors.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/Transforms/Passes.h"

using namespace mlir;

namespace heddle::attn {
#define GEN_PASS_DEF_ATTNPART
#include "dialect/Transforms/Passes.h.inc"

namespace {

/// Why a call of the pattern cannot be taken apart; success: it can.
LogicalResult verifyCanBeParts(PatternOp pattern) {
  bool countsRows = false, hasDrafts = false;
  pattern.walk([&](MaskOpInterface mask) {
    DocumentTensors documents = DocumentTensors::of(mask);
    countsRows |= documents && documents.countRows();
    hasDrafts |= mask.fewQueries() > 0;
  });
  if (hasDrafts)
    return pattern.emitOpError(
        "expected a pattern of as many queries as keys, got draft tokens behind a cache; one GPU "
        "has them all");
  if (countsRows)
    return pattern.emitOpError("expected offsets of documents that count positions, got q_origin(end) with offsets of "
                               "queries and of keys, which count rows of one call; offsets of one tensor are of both "
                               "(library:document)");
  return success();
}

StringRef docOf(WholeAxis axis) {
  switch (axis) {
  case WholeAxis::Queries:
    return "queries of the whole";
  case WholeAxis::Keys:
    return "keys of the whole";
  case WholeAxis::Columns:
    return "entries of a row of tensors with one for each query and key";
  }
  return "";
}

bool hasColumns(PatternOp pattern) {
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    if (pattern.isOperand(argument) && hasKeys(pattern, argument))
      return true;
  return false;
}

void addWholeArgument(PatternOp pattern, WholeAxis axis) {
  Builder builder(pattern.getContext());
  const std::string name = ("whole_" + wholeName(axis)).str();
  auto attribute = [&](StringRef key, StringRef value) {
    return builder.getNamedAttr(key, builder.getStringAttr(value));
  };
  DictionaryAttr attributes = builder.getDictionaryAttr(
      {attribute("attn.name", name), attribute("attn.doc", docOf(axis)), attribute(kWhole, wholeName(axis))});
  (void)pattern.insertArgument(pattern.getNumArguments(), builder.getI32Type(), attributes, pattern.getLoc());
}

struct AttnPartPass : impl::AttnPartBase<AttnPartPass> {
  void runOnOperation() override {
    if (failed(makePart(getOperation())))
      signalPassFailure();
  }
};

} // namespace

LogicalResult makePart(PatternOp pattern) {
  if (areParts(pattern))
    return success();
  if (failed(verifyCanBeParts(pattern)))
    return failure();
  pattern.setQOrigin(Origin::given);
  for (WholeAxis axis : kWholeAxes)
    if (!pattern.getWholeArgument(axis) && (axis != WholeAxis::Columns || hasColumns(pattern)))
      addWholeArgument(pattern, axis);
  return success();
}

} // namespace heddle::attn
