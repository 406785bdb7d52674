#include "dialect/IR/Sizes.h"
#include "dialect/Geometry/Lattice.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::attn {

IntExpr offsetExpr(int64_t rate, std::optional<int64_t> at, std::optional<OffsetRule> rule, const IntExpr &group) {
  IntExpr head = symbol(Symbol::Head), heads = symbol(Symbol::Heads);
  if (at)
    return *at;
  switch (*rule) {
  case OffsetRule::modulo:
    return mod(head, rate);
  case OffsetRule::block:
    return floorDiv(head, ceilDiv(heads, rate));
  case OffsetRule::group:
    return mod(group, rate);
  case OffsetRule::every:
    break;
  }
  llvm_unreachable("`every` has no single offset");
}

/// True if some user of the mask, however far, chooses by heads. Verifiers run before dominance is known: users may go in
/// circles.
static bool servesHeads(Operation *op) {
  llvm::SetVector<Operation *> reached;
  reached.insert(op);
  for (size_t next = 0; next < reached.size(); ++next)
    for (Operation *user : reached[next]->getUsers()) {
      if (isa<MaskOpInterface>(user) && formOf(user) == MaskForm::ByHeads)
        return true;
      reached.insert(user);
    }
  return false;
}

LogicalResult verifyOffset(Operation *op, int64_t rate, std::optional<int64_t> at, std::optional<OffsetRule> rule) {
  if (rate < 1)
    return op->emitOpError("expected a rate >= 1, got ") << rate;
  if (rate > kMaxRate)
    return op->emitOpError("expected a rate <= ") << kMaxRate << ", got " << rate;
  if (at.has_value() == rule.has_value())
    return op->emitOpError("expected either an offset (`at 0`) or a rule (`rule(modulo)`)");
  if (at && (*at < 0 || *at >= rate))
    return op->emitOpError("expected an offset in [0, ") << rate << "), got " << *at;
  if (rule == OffsetRule::group && !op->use_empty() && !servesHeads(op))
    return op->emitOpError("expected an attn.heads around rule(group)");
  return success();
}

} // namespace heddle::attn
