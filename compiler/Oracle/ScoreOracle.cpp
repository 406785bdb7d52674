//===- ScoreOracle.cpp - the definition of a chain of scores --------------===//
// One case per op, in the words of the op's description (dialect/IR/ScoreOps.td) and in nobody else's.
//===----------------------------------------------------------------------===//
#include "compiler/Oracle/ScoreOracle.h"
#include "dialect/IR/RealWord.h"

#include <cmath>
#include <stdexcept>

namespace heddle::oracle {

ScoreOracle::ScoreOracle(attn::PatternOp pattern, const Problem &problem) : problem(problem) {
  for (mlir::Value last = pattern.getSoftmax().getScores(); last;) {
    links.insert(links.begin(), last.getDefiningOp());
    last = links.front()->getNumOperands() ? links.front()->getOperand(0) : mlir::Value();
  }
}

std::vector<double> alibiSlopes(int64_t heads) {
  int64_t regular = 1;
  while (2 * regular <= heads)
    regular *= 2;
  std::vector<double> slopes;
  const double first = std::pow(2.0, -8.0 / double(regular));
  for (int64_t head = 0; head < regular; ++head)
    slopes.push_back(std::pow(first, double(head + 1)));
  if (regular < heads) {
    std::vector<double> finer = alibiSlopes(2 * regular);
    for (int64_t head = regular; head < heads; ++head)
      slopes.push_back(finer[2 * (head - regular)]);
  }
  return slopes;
}

double ScoreOracle::number(mlir::Value dynamic, mlir::FloatAttr constant) const {
  if (!dynamic)
    return constant.getValueAsDouble();
  return attn::realOfWord(problem.parameters.at(llvm::cast<mlir::BlockArgument>(dynamic).getArgNumber()));
}

template <class Number> Number ScoreOracle::change(mlir::Operation *op, const ScorePlace &at, Number score) const {
  if (llvm::isa<attn::ScaledOp>(op))
    return score;
  if (auto softcap = llvm::dyn_cast<attn::SoftcapOp>(op)) {
    Number cap = Number(number(softcap.getDynamicCap(), softcap.getCapAttr()));
    return cap * std::tanh(score / cap);
  }
  if (llvm::isa<attn::AlibiOp>(op))
    return score - Number(alibiSlopes(problem.heads)[at.head]) * Number(std::abs(at.q - at.k));
  if (auto map = llvm::dyn_cast<attn::ScoreMapOp>(op))
    return evaluateScoreMap(map, at, score, problem.parameters);
  throw std::logic_error("op '" + op->getName().getStringRef().str() + "' has no definition in the oracle");
}

template <class Number> Number ScoreOracle::score(const ScorePlace &at, Number scaled) const {
  for (mlir::Operation *link : links)
    scaled = change(link, at, scaled);
  return scaled;
}
template float ScoreOracle::score(const ScorePlace &at, float scaled) const;
template double ScoreOracle::score(const ScorePlace &at, double scaled) const;

double ScoreOracle::slope(const ScorePlace &at, double scaled) const {
  const double step = 1e-5 * std::max(1.0, std::abs(scaled));
  return (score(at, scaled + step) - score(at, scaled - step)) / (2 * step);
}

} // namespace heddle::oracle
