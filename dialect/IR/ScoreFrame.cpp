//===- ScoreFrame.cpp - where a chain of scores is built ------------------===//
#include "dialect/IR/ScoreFrame.h"
#include "dialect/IR/Attn.h"

using namespace mlir;

namespace heddle::attn {

Value ScoreFrame::real(double value) const {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
}
Value ScoreFrame::integer(int32_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
}
Value ScoreFrame::toReal(Value integer) const {
  return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), integer);
}

SmallVector<Operation *> scoreChain(Value scores) {
  SmallVector<Operation *> chain;
  for (Value link = scores; link; link = cast<ScoreOpInterface>(chain.back()).getChanged())
    chain.push_back(link.getDefiningOp());
  std::reverse(chain.begin(), chain.end());
  return chain;
}

bool changesScores(Value scores) { return scoreChain(scores).size() > 1; }

std::string chainInWords(Value scores) {
  std::string words;
  for (Operation *link : scoreChain(scores))
    words += (words.empty() ? "" : " -> ") + cast<ScoreOpInterface>(link).inWords();
  return words;
}

Value buildScoreChain(Value scores, const ScoreFrame &frame, Value score) {
  for (Operation *link : scoreChain(scores))
    score = cast<ScoreOpInterface>(link).buildScore(frame, score);
  return score;
}

Value buildScoreDerivative(Value scores, const ScoreFrame &frame, Value score) {
  Value derivative = frame.real(1);
  for (Operation *link : scoreChain(scores)) {
    auto op = cast<ScoreOpInterface>(link);
    derivative = frame.mul(derivative, op.buildDerivative(frame, score));
    score = op.buildScore(frame, score);
  }
  return derivative;
}

} // namespace heddle::attn
