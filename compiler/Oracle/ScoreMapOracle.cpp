// Evaluates the ops of a region one after the other: f32 as numbers of the wanted precision, the others by folding.
#include "compiler/Oracle/ScoreOracle.h"
#include "dialect/IR/RealWord.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <stdexcept>

namespace heddle::oracle {
namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;

// These are of real numbers; those of Dual are found by its namespace.
using std::abs, std::ceil, std::cos, std::erf, std::exp, std::exp2, std::expm1, std::floor, std::fma, std::log,
    std::log1p, std::log2, std::pow, std::sin, std::sqrt, std::tanh;

template <class Number> class Region {
public:
  void set(mlir::Value value, Number number) { reals[value] = number; }
  void set(mlir::Value value, mlir::Attribute word) { words[value] = word; }

  Number run(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      if (auto yield = llvm::dyn_cast<attn::YieldOp>(op))
        return reals.lookup(yield.getValue());
      if (op.getResult(0).getType().isF32())
        set(op.getResult(0), real(op));
      else if (auto compare = llvm::dyn_cast<arith::CmpFOp>(op))
        set(op.getResult(0), truth(compare));
      else
        fold(op);
    }
    throw std::logic_error("region without a yield");
  }

private:
  Number x(mlir::Operation &op, unsigned index = 0) const { return reals.lookup(op.getOperand(index)); }
  llvm::APInt word(mlir::Value value) const { return llvm::cast<mlir::IntegerAttr>(words.lookup(value)).getValue(); }

  mlir::Attribute truth(arith::CmpFOp op) const {
    const bool holds =
        arith::applyCmpPredicate(op.getPredicate(), llvm::APFloat(double(x(*op))), llvm::APFloat(double(x(*op, 1))));
    return mlir::IntegerAttr::get(op.getType(), holds);
  }

  Number real(mlir::Operation &op) const {
    if (op.getNumOperands() == 0)
      return Number(llvm::cast<mlir::FloatAttr>(llvm::cast<arith::ConstantOp>(op).getValue()).getValueAsDouble());
    if (llvm::isa<arith::SIToFPOp>(op))
      return Number(word(op.getOperand(0)).getSExtValue());
    if (llvm::isa<arith::UIToFPOp>(op))
      return Number(word(op.getOperand(0)).getZExtValue());
    return op.getNumOperands() == 1 ? ofOne(op) : ofSeveral(op);
  }

  Number ofOne(mlir::Operation &op) const {
    return llvm::TypeSwitch<mlir::Operation *, Number>(&op)
        .Case([&](arith::NegFOp) { return -x(op); })
        .Case([&](math::AbsFOp) { return abs(x(op)); })
        .Case([&](math::CeilOp) { return ceil(x(op)); })
        .Case([&](math::CosOp) { return cos(x(op)); })
        .Case([&](math::ErfOp) { return erf(x(op)); })
        .Case([&](math::ExpOp) { return exp(x(op)); })
        .Case([&](math::Exp2Op) { return exp2(x(op)); })
        .Case([&](math::ExpM1Op) { return expm1(x(op)); })
        .Case([&](math::FloorOp) { return floor(x(op)); })
        .Case([&](math::LogOp) { return log(x(op)); })
        .Case([&](math::Log1pOp) { return log1p(x(op)); })
        .Case([&](math::Log2Op) { return log2(x(op)); })
        .Case([&](math::RsqrtOp) { return Number(1) / sqrt(x(op)); })
        .Case([&](math::SinOp) { return sin(x(op)); })
        .Case([&](math::SqrtOp) { return sqrt(x(op)); })
        .Case([&](math::TanhOp) { return tanh(x(op)); });
  }

  Number ofSeveral(mlir::Operation &op) const {
    return llvm::TypeSwitch<mlir::Operation *, Number>(&op)
        .Case([&](arith::AddFOp) { return x(op) + x(op, 1); })
        .Case([&](arith::SubFOp) { return x(op) - x(op, 1); })
        .Case([&](arith::MulFOp) { return x(op) * x(op, 1); })
        .Case([&](arith::DivFOp) { return x(op) / x(op, 1); })
        .Case([&](arith::MaximumFOp) { return std::max(x(op), x(op, 1)); })
        .Case([&](arith::MinimumFOp) { return std::min(x(op), x(op, 1)); })
        .Case([&](arith::SelectOp) { return word(op.getOperand(0)).isZero() ? x(op, 2) : x(op, 1); })
        .Case([&](math::FmaOp) { return fma(x(op), x(op, 1), x(op, 2)); })
        .Case([&](math::PowFOp) { return pow(x(op), x(op, 1)); });
  }

  void fold(mlir::Operation &op) {
    llvm::SmallVector<mlir::Attribute, 4> operands;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(words.lookup(operand));
    llvm::SmallVector<mlir::OpFoldResult, 1> results;
    mlir::Attribute folded;
    if (mlir::succeeded(op.fold(operands, results)) && results.size() == 1) {
      folded = llvm::dyn_cast_if_present<mlir::Attribute>(results[0]);
      if (!folded)
        folded = words.lookup(llvm::cast<mlir::Value>(results[0]));
    }
    if (!folded)
      throw std::logic_error("'" + op.getName().getStringRef().str() + "' has no value for these arguments");
    set(op.getResult(0), folded);
  }

  llvm::SmallDenseMap<mlir::Value, Number, 16> reals;
  llvm::SmallDenseMap<mlir::Value, mlir::Attribute, 16> words;
};

} // namespace

template <class Number>
Number evaluateScoreMap(attn::ScoreMapOp map, const ScorePlace &at, Number score,
                        const std::vector<int64_t> &parameters, int by) {
  mlir::Block &block = map.getBody().front();
  Region<Number> region;
  auto setWord = [&](unsigned index, int64_t value) {
    mlir::Value argument = block.getArgument(index);
    region.set(argument, mlir::IntegerAttr::get(argument.getType(), value));
  };
  region.set(block.getArgument(0), score);
  const int64_t place[] = {at.batch, at.head, at.q, at.k};
  for (unsigned i = 0; i < std::size(place); ++i)
    setWord(1 + i, place[i]);
  for (auto [index, number] : llvm::enumerate(map.getNumbers())) {
    int64_t word = parameters.at(llvm::cast<mlir::BlockArgument>(number).getArgNumber());
    if (number.getType().isF32())
      region.set(block.getArgument(5 + index), numberOf<Number>(attn::realOfWord(word), number, by));
    else
      setWord(5 + index, word);
  }
  return region.run(block);
}
template float evaluateScoreMap(attn::ScoreMapOp, const ScorePlace &, float, const std::vector<int64_t> &, int);
template double evaluateScoreMap(attn::ScoreMapOp, const ScorePlace &, double, const std::vector<int64_t> &, int);
template Dual evaluateScoreMap(attn::ScoreMapOp, const ScorePlace &, Dual, const std::vector<int64_t> &, int);

} // namespace heddle::oracle
