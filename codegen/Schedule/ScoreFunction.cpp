//===- ScoreFunction.cpp - what a pattern makes of a score ----------------===//
#include "codegen/Schedule/ScoreFunction.h"
#include "codegen/Schedule/FunctionBuilder.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle {
namespace {

using BuildScore = Value (*)(Value scores, const attn::ScoreFrame &frame, Value score);

/// The arguments of the pattern as values: numbers are read from their words.
IRMapping parametersOf(FunctionBuilder &f, attn::PatternOp pattern) {
  IRMapping parameters;
  for (BlockArgument argument : pattern.getBody().getArguments()) {
    Value word = f.parameter(argument.getArgNumber());
    if (argument.getType().isF32())
      word = arith::BitcastOp::create(f.builder, f.loc, argument.getType(), word);
    parameters.map(argument, word);
  }
  return parameters;
}

void appendFunction(ModuleOp module, attn::PatternOp pattern, StringRef name, BuildScore build) {
  using Context = FunctionBuilder;
  Type i32 = IntegerType::get(module.getContext(), 32), f32 = Float32Type::get(module.getContext());
  FunctionBuilder f(module, name, pattern.getNumArguments(), /*hasContext=*/true, {i32, i32, f32}, {f32});
  IRMapping parameters = parametersOf(f, pattern);
  attn::ScoreFrame frame{f.builder,  f.loc,      f.context(Context::Batch), f.context(Context::Head), f.context(Context::Heads),
                         f.extra(0), f.extra(1), &parameters};
  f.finish(build(pattern.getSoftmax().getScores(), frame, f.extra(2)));
}

} // namespace

bool appendScoreFunction(ModuleOp module, attn::PatternOp pattern) {
  if (!attn::changesScores(pattern.getSoftmax().getScores()))
    return false;
  appendFunction(module, pattern, "pattern_score", attn::buildScoreChain);
  return true;
}

void appendScoreDerivative(ModuleOp module, attn::PatternOp pattern) {
  appendFunction(module, pattern, "pattern_score_derivative", attn::buildScoreDerivative);
}

} // namespace heddle
