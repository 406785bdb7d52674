//===- ScoreFunction.cpp - what a pattern makes of a score ----------------===//
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

/// Of a function whose first extra arguments are the positions of a pair and the document of its query.
attn::ScoreFrame frameOfPair(FunctionBuilder &f, attn::PatternOp pattern, const attn::ArgumentValues &arguments) {
  attn::ScoreFrame frame = frameOf(f, arguments, f.extra(0), f.extra(1));
  if (attn::documentsOfScores(pattern))
    attn::countInDocument(pattern, placeOf(frame), f.extra(2), frame);
  return frame;
}

void appendFunction(ModuleOp module, attn::PatternOp pattern, StringRef name, BuildScore build) {
  Type i32 = IntegerType::get(module.getContext(), 32), f32 = Float32Type::get(module.getContext());
  FunctionBuilder f(module, name, pattern, {/*hasContext=*/true, {i32, i32, i32, f32}, {f32}});
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
  const attn::ScoreFrame frame = frameOfPair(f, pattern, arguments);
  f.finish(build(pattern.getSoftmax().getScores(), frame, f.extra(3)));
}

/// pattern_score_document, where scores count positions inside documents.
void appendDocumentFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::documentsOfScores(pattern))
    return;
  Type i32 = IntegerType::get(module.getContext(), 32);
  FunctionBuilder f(module, "pattern_score_document", pattern, {/*hasContext=*/true, {i32}, {i32}});
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/false);
  f.finish(attn::buildScoreDocument(pattern, placeOf(frameOf(f, arguments, f.extra(0), Value()))));
}

} // namespace

bool appendScoreFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::changesScores(pattern.getSoftmax().getScores()))
    return false;
  appendDocumentFunction(module, pattern);
  appendFunction(module, pattern, "pattern_score", attn::buildScoreChain);
  return true;
}

bool appendSinkFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!pattern.getSoftmax().hasSink())
    return false;
  Type f32 = Float32Type::get(module.getContext());
  FunctionBuilder f(module, "pattern_sink", pattern, {/*hasContext=*/true, {}, {f32}});
  const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
  const attn::ScoreFrame frame = frameOf(f, arguments, Value(), Value());
  f.finish(pattern.getSoftmax().buildSink(frame));
  return true;
}

bool appendScoreGradient(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::changesScores(pattern.getSoftmax().getScores()))
    return false;
  appendFunction(module, pattern, "pattern_score_gradient", attn::buildScoreDerivative);
  return true;
}

void appendArgumentGradients(ModuleOp module, attn::PatternOp pattern) {
  MLIRContext *context = module.getContext();
  Type i32 = IntegerType::get(context, 32), i64 = IntegerType::get(context, 64);
  Value scores = pattern.getSoftmax().getScores();
  for (BlockArgument argument : attn::argumentsOfScores(scores)) {
    const std::string number = std::to_string(argument.getArgNumber());
    appendFunction(module, pattern, "pattern_argument_gradient_" + number,
                   [&](Value chain, const attn::ScoreFrame &frame, Value score) {
                     return attn::buildArgumentDerivative(chain, frame, score, argument);
                   });
    FunctionBuilder f(module, "pattern_argument_place_" + number, pattern,
                      {/*hasContext=*/true, {i32, i32, i32}, {i64}});
    const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/true);
    const attn::ScoreFrame frame = frameOfPair(f, pattern, arguments);
    Value place = attn::buildArgumentPlace(scores, frame, argument);
    f.finish(arith::IndexCastOp::create(f.builder, f.loc, i64, place).getResult());
  }
}

} // namespace heddle
