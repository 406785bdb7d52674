#include "codegen/Choose/LaunchExprOf.h"
#include "codegen/Choose/RatesOf.h"
#include "dialect/IR/PatternOperands.h"

namespace heddle {
namespace {

ArgumentBound boundOfSize(attn::PatternOp pattern, unsigned argument) {
  ArgumentBound bound;
  bound.argument = argument;
  bound.value = LaunchExpr::param(argument);
  bound.least = pattern.getParameterMinimum(argument);
  const QOriginRule rule = originRuleOf(pattern);
  auto endOfCall = [&](attn::Symbol::Kind origin, attn::Symbol::Kind rows) {
    bound.least = launchExprOf(attn::symbol(origin) + attn::symbol(rows), rule);
    bound.reason = "where this part of the whole ends";
  };
  if (pattern.getWholeArgument(attn::WholeAxis::Queries) == argument)
    endOfCall(attn::Symbol::QOrigin, attn::Symbol::SeqlenQ);
  if (pattern.getWholeArgument(attn::WholeAxis::Keys) == argument)
    endOfCall(attn::Symbol::KOrigin, attn::Symbol::SeqlenK);
  if (pattern.getWholeArgument(attn::WholeAxis::Columns) == argument)
    bound.least = LaunchSymbol::seqlenK, bound.reason = "those of the call's keys";
  return bound;
}

ArgumentBound boundOfLength(attn::PatternOp pattern, unsigned argument, const attn::LengthBound &length) {
  const auto type = llvm::cast<mlir::MemRefType>(pattern.getArgument(argument).getType());
  const unsigned last = unsigned(type.getRank()) - 1;
  const QOriginRule rule = originRuleOf(pattern);
  ArgumentBound bound;
  bound.argument = argument;
  bound.value = type.isDynamicDim(last) ? LaunchExpr::param(argument) : LaunchExpr(type.getDimSize(last));
  bound.least = launchExprOf(length.least, rule);
  bound.most = length.most ? launchExprOf(length.most, rule) : LaunchExpr(ArgumentBound::kNoMost);
  bound.unit = length.unit;
  bound.reason = length.reason;
  return bound;
}

/// Rows of queries that a tensor has: those of a call are among them.
ArgumentBound boundOfRows(unsigned argument) {
  ArgumentBound bound;
  bound.argument = argument;
  bound.value = LaunchExpr::param(argument);
  bound.least = LaunchSymbol::seqlenQ;
  bound.unit = "row", bound.reason = "those of the call's queries";
  return bound;
}

} // namespace

std::vector<ArgumentBound> argumentBounds(attn::PatternOp pattern) {
  std::vector<ArgumentBound> bounds;
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument) {
    if (!pattern.isOperand(argument) && !pattern.isRealParameter(argument))
      bounds.push_back(boundOfSize(pattern, argument));
    if (!pattern.isOperand(argument))
      continue;
    for (const attn::OperandUse &use : attn::operandUses(pattern, argument))
      if (use.extents.back() == attn::Extent::Length)
        bounds.push_back(boundOfLength(pattern, argument, use.length));
    if (attn::hasExtent(pattern, argument, attn::Extent::Rows))
      bounds.push_back(boundOfRows(argument));
  }
  return bounds;
}

} // namespace heddle
