#include "codegen/Schedule/FunctionBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace arith = mlir::arith;
namespace scf = mlir::scf;

namespace heddle {

/// Batch and so on, a word for each argument of the pattern, its tensors.
static SmallVector<Type> contextTypes(attn::PatternOp pattern) {
  SmallVector<Type> types(FunctionBuilder::FirstParameter + pattern.getNumArguments(),
                          IntegerType::get(pattern.getContext(), 32));
  for (unsigned index = 0; index < pattern.getNumArguments(); ++index)
    if (pattern.isOperand(index))
      types.push_back(attn::loweredOperandType(cast<MemRefType>(pattern.getArgumentTypes()[index]).getElementType()));
  return types;
}

FunctionBuilder::FunctionBuilder(ModuleOp module, StringRef name, attn::PatternOp pattern, const FunctionShape &shape)
    : builder(module.getBodyRegion()), loc(module.getLoc()), pattern(pattern) {
  SmallVector<Type> inputs;
  if (shape.hasContext)
    inputs = contextTypes(pattern);
  extraOffset = inputs.size();
  inputs.append(shape.extra);
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(inputs, shape.results));
  builder.setInsertionPointToStart(function.addEntryBlock());
}

FunctionBuilder::FunctionBuilder(ModuleOp module, const PatternFunction &function, attn::PatternOp pattern,
                                 StringRef symbol)
    : FunctionBuilder(module, symbol.empty() ? function.symbol : symbol, pattern,
                      {function.takesContext, extraTypes(module.getContext(), function),
                       resultTypes(module.getContext(), function)}) {}

attn::ArgumentValues FunctionBuilder::argumentValues(bool asReals) {
  attn::ArgumentValues arguments;
  unsigned nextOperand = FirstParameter + pattern.getNumArguments();
  for (BlockArgument argument : pattern.getBody().getArguments()) {
    Value word = parameter(argument.getArgNumber());
    if (pattern.isOperand(argument.getArgNumber())) {
      arguments.lengths.map(argument, word);
      word = function.getArgument(nextOperand++);
    } else if (asReals && argument.getType().isF32()) {
      word = arith::BitcastOp::create(builder, loc, argument.getType(), word);
    }
    arguments.values.map(argument, word);
  }
  return arguments;
}

Value FunctionBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value FunctionBuilder::isEqual(Value a, int64_t value) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, constant(value));
}

void FunctionBuilder::finish(ValueRange results) { func::ReturnOp::create(builder, loc, results); }

Value FunctionBuilder::contextSymbol(attn::Symbol symbol) {
  using S = attn::Symbol;
  switch (symbol.kind) {
  case S::Batch:
    return context(Batch);
  case S::Head:
    return context(Head);
  case S::Heads:
    return context(Heads);
  case S::SeqlenQ:
    return context(SeqlenQ);
  case S::SeqlenK:
    return context(SeqlenK);
  case S::QOrigin:
    return context(QOrigin);
  case S::KOrigin:
    return context(KOrigin);
  case S::Parameter:
    return parameter(symbol.index);
  case S::Tensor:
    return argumentValues(/*asReals=*/false).values.lookup(pattern.getArgument(symbol.index));
  default:
    return {};
  }
}

/// Where the choice among [first, last) is parted: one by one, but many in halves, as every pass over a function costs
/// its depth.
static unsigned partOf(unsigned first, unsigned last) {
  constexpr unsigned kMostInTurn = 16;
  return last - first > kMostInTurn ? first + (last - first) / 2 : first + 1;
}

Value FunctionBuilder::isBefore(Value selector, unsigned first, unsigned part) {
  if (part == first + 1)
    return isEqual(selector, first);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, selector, constant(part));
}

Value FunctionBuilder::choose(Value selector, unsigned count, Type type, function_ref<Value(unsigned)> makeValue) {
  auto build = [&](auto &self, unsigned first, unsigned last) -> Value {
    if (first + 1 == last)
      return makeValue(first);
    const unsigned part = partOf(first, last);
    auto branch =
        scf::IfOp::create(builder, loc, TypeRange{type}, isBefore(selector, first, part), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, self(self, first, part));
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, self(self, part, last));
    return branch.getResult(0);
  };
  return build(build, 0, count);
}

void FunctionBuilder::dispatch(Value selector, unsigned count, function_ref<void(unsigned)> body) {
  auto build = [&](auto &self, unsigned first, unsigned last) -> void {
    if (first + 1 == last)
      return body(first);
    const unsigned part = partOf(first, last);
    auto branch = scf::IfOp::create(builder, loc, isBefore(selector, first, part), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    self(self, first, part);
    builder.setInsertionPointToStart(branch.elseBlock());
    self(self, part, last);
  };
  build(build, 0, count);
}

} // namespace heddle
