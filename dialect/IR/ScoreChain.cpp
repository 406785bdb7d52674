//===- ScoreChain.cpp - what a chain makes of a score ---------------------===//
#include "dialect/IR/ScoreChain.h"

using namespace mlir;

namespace heddle::attn {

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
