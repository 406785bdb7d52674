#include "dialect/IR/ScoreChain.h"

#include "mlir/IR/Matchers.h"

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

/// A number that is added to its score is added to what the link makes of it.
static bool passesAddedNumbers(ScoreOpInterface link) {
  Block block;
  OpBuilder builder(link->getContext());
  builder.setInsertionPointToEnd(&block);
  const Location loc = link->getLoc();
  auto value = [&](Type type) -> Value { return block.addArgument(type, loc); };
  ArgumentValues arguments;
  for (Value operand : link->getOperands())
    if (isa<BlockArgument>(operand))
      arguments.values.map(operand, value(operand.getType()));
  auto number = [&] { return value(builder.getI32Type()); };
  const ScoreFrame frame{builder,  loc,      number(),   number(), number(), number(), number(),
                         number(), number(), &arguments, number(), number(), number(), number()};
  return matchPattern(link.buildDerivative(frame, value(builder.getF32Type())), m_OneFloat());
}

std::string whatSeesAddedNumbers(PatternOp pattern) {
  std::string found;
  pattern.walk([&](Operation *op) {
    auto link = dyn_cast<ScoreOpInterface>(op);
    auto softmax = dyn_cast<SoftmaxOp>(op);
    if (link && found.empty() && !passesAddedNumbers(link))
      found = link.inWords();
    else if (softmax && found.empty() && softmax.hasSink())
      found = "sink";
  });
  return found;
}

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

static bool hasDerivatives(Type type) {
  auto tensor = dyn_cast<MemRefType>(type);
  return tensor ? isa<FloatType>(tensor.getElementType()) : type.isF32();
}

SmallVector<BlockArgument> argumentsOfScores(Value scores) {
  SmallVector<BlockArgument> arguments;
  for (Operation *link : scoreChain(scores))
    for (Value operand : link->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && hasDerivatives(argument.getType()) && !llvm::is_contained(arguments, argument))
        arguments.push_back(argument);
  return arguments;
}

Value buildArgumentDerivative(Value scores, const ScoreFrame &frame, Value score, BlockArgument argument) {
  Value derivative;
  for (Operation *link : scoreChain(scores)) {
    auto op = cast<ScoreOpInterface>(link);
    if (derivative)
      derivative = frame.mul(derivative, op.buildDerivative(frame, score));
    if (Value own = op.buildArgumentDerivative(frame, score, argument))
      derivative = derivative ? frame.add(derivative, own) : own;
    score = op.buildScore(frame, score);
  }
  return derivative ? derivative : frame.real(0);
}

Value buildArgumentPlace(Value scores, const ScoreFrame &frame, BlockArgument argument) {
  for (Operation *link : scoreChain(scores))
    if (llvm::is_contained(link->getOperands(), argument))
      if (Value place = cast<ScoreOpInterface>(link).buildPlace(frame, argument))
        return place;
  return arith::ConstantIndexOp::create(frame.builder, frame.loc, 0);
}

} // namespace heddle::attn
