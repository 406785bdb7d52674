#include "codegen/Choose/LaunchExprOf.h"
#include "codegen/Config/ForwardLaunch.h"

#include "llvm/Support/ErrorHandling.h"

namespace heddle {
namespace {

LaunchExpr symbolOf(const attn::Symbol &symbol, QOriginRule rule) {
  switch (symbol.kind) {
  case attn::Symbol::Batch: // rows of several sequences are a batch of one
    return max(LaunchSymbol::batch, LaunchSymbol::sequences);
  case attn::Symbol::Parameter:
    return LaunchExpr::param(symbol.index);
  case attn::Symbol::SeqlenQ:
    return LaunchSymbol::seqlenQ;
  case attn::Symbol::SeqlenK:
    return LaunchSymbol::seqlenK;
  case attn::Symbol::QOrigin:
    return qOriginExpr(rule);
  case attn::Symbol::KOrigin:
    return LaunchSymbol::kOrigin;
  default:
    llvm_unreachable("sizes of a call depend on no head, row or tile");
  }
}

} // namespace

LaunchExpr launchExprOf(const attn::IntExpr &expr, QOriginRule rule) {
  const attn::IntExpr::Node &node = *expr.get();
  auto operand = [&](unsigned index) { return launchExprOf(node.operands[index], rule); };
  switch (node.op) {
  case attn::IntExpr::Constant:
    return node.value;
  case attn::IntExpr::Symbolic:
    return symbolOf(node.symbol, rule);
  case attn::IntExpr::Add:
    return operand(0) + operand(1);
  case attn::IntExpr::Sub:
    return operand(0) - operand(1);
  case attn::IntExpr::FloorDiv:
    return floorDiv(operand(0), operand(1));
  case attn::IntExpr::Min:
    return min(operand(0), operand(1));
  case attn::IntExpr::Max:
    return max(operand(0), operand(1));
  default:
    llvm_unreachable("sizes of a call are sums, quotients and extremes");
  }
}

} // namespace heddle
