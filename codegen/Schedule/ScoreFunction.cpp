#include "codegen/Schedule/ScoreFunction.h"
#include "codegen/Schedule/FunctionBuilder.h"
#include "dialect/IR/ScoreChain.h"
#include "dialect/IR/ScoreDocuments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heddle {
namespace {

using BuildScore = llvm::function_ref<Value(Value scores, const attn::ScoreFrame &frame, Value score)>;

attn::ScoreFrame frameOf(FunctionBuilder &f, const attn::ArgumentValues &arguments, Value q, Value k) {
  using Context = FunctionBuilder;
  return {f.builder,
          f.loc,
          f.context(Context::Batch),
          f.context(Context::Head),
          f.context(Context::Heads),
          q,
          k,
          q,
          k,
          &arguments,
          f.context(Context::SeqlenQ),
          f.context(Context::SeqlenK),
          f.context(Context::QOrigin),
          f.context(Context::KOrigin)};
}

/// A pair of the call, for what documents are asked.
attn::PredicateFrame placeOf(const attn::ScoreFrame &frame) {
  return {frame.builder, frame.loc,  frame.callQ, frame.callK, /*extentQ=*/{},           /*extentK=*/{},
          frame.batch,   frame.head, frame.heads, /*group=*/0, /*groupOfCount=*/nullptr, frame.arguments,
          frame.qOrigin};
}

/// The first extra arguments of the function are the positions of a pair and the document of its query.
attn::ScoreFrame frameOfPair(FunctionBuilder &f, attn::PatternOp pattern, const attn::ArgumentValues &arguments) {
  attn::ScoreFrame frame = frameOf(f, arguments, f.extra(0), f.extra(1));
  if (attn::documentsOfScores(pattern))
    attn::countInDocument(pattern, placeOf(frame), f.extra(2), frame);
  return frame;
}

void appendFunction(FunctionBuilder f, attn::PatternOp pattern, BuildScore build) {
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
  const attn::ScoreFrame frame = frameOfPair(f, pattern, arguments);
  f.finish(build(pattern.getSoftmax().getScores(), frame, f.extra(3)));
}

/// pattern_score_document, where scores count positions inside documents.
void appendDocumentFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::documentsOfScores(pattern))
    return;
  FunctionBuilder f(module, patternFunction(Generated::ScoreDocument), pattern);
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/false);
  f.finish(attn::buildScoreDocument(pattern, placeOf(frameOf(f, arguments, f.extra(0), Value()))));
}

} // namespace

bool appendScoreFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::changesScores(pattern.getSoftmax().getScores()))
    return false;
  appendDocumentFunction(module, pattern);
  appendFunction({module, patternFunction(Generated::Score), pattern}, pattern, attn::buildScoreChain);
  return true;
}

bool appendSinkFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!pattern.getSoftmax().hasSink())
    return false;
  FunctionBuilder f(module, patternFunction(Generated::Sink), pattern);
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
  const attn::ScoreFrame frame = frameOf(f, arguments, Value(), Value());
  f.finish(pattern.getSoftmax().buildSink(frame));
  return true;
}

bool appendScoreGradient(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::changesScores(pattern.getSoftmax().getScores()))
    return false;
  appendFunction({module, patternFunction(Generated::ScoreGradient), pattern}, pattern, attn::buildScoreDerivative);
  return true;
}

void appendArgumentGradients(ModuleOp module, attn::PatternOp pattern) {
  Value scores = pattern.getSoftmax().getScores();
  for (BlockArgument argument : attn::argumentsOfScores(scores)) {
    auto start = [&](Generated which) {
      return FunctionBuilder(module, patternFunction(which), pattern, symbolOf(which, int(argument.getArgNumber())));
    };
    appendFunction(start(Generated::ArgumentGradient), pattern,
                   [&](Value chain, const attn::ScoreFrame &frame, Value score) {
                     return attn::buildArgumentDerivative(chain, frame, score, argument);
                   });
    FunctionBuilder f = start(Generated::ArgumentPlace);
    const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
    const attn::ScoreFrame frame = frameOfPair(f, pattern, arguments);
    Value place = attn::buildArgumentPlace(scores, frame, argument);
    f.finish(arith::IndexCastOp::create(f.builder, f.loc, f.builder.getI64Type(), place).getResult());
  }
}

} // namespace heddle
