// Refuses mask ops that leave open how they are made: all of a dialect when it is loaded, each when it is verified.
#include "dialect/IR/Attn.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace heddle::attn {
namespace {

/// What the op leaves open; null: nothing.
const char *openQuestion(OperationName op) {
  const MaskOpInterface::Concept *mask = op.getInterface<MaskOpInterface>();
  if (!mask)
    return nullptr;
  const MaskForm form = mask->form();
  if (form == MaskForm::Unanswered)
    return "does not say how it is made of its operands (MaskOpInterface::form)";
  if ((form == MaskForm::Pullback) != op.hasInterface<PullbackOpInterface>())
    return "does not say the coordinates of its operand: a pullback, and nothing else, is a PullbackOpInterface";
  return nullptr;
}

/// Comes after every dialect, and asks for those too that were loaded before this one.
class FormsAreKnown : public DialectExtensionBase {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FormsAreKnown)
  FormsAreKnown() : DialectExtensionBase({}) {}

  void apply(MLIRContext *context, MutableArrayRef<Dialect *>) const override {
    for (OperationName op : context->getRegisteredOperations())
      if (const char *question = openQuestion(op))
        llvm::report_fatal_error("op '" + op.getStringRef() + "' " + question, /*gen_crash_diag=*/false);
  }

  std::unique_ptr<DialectExtensionBase> clone() const override { return std::make_unique<FormsAreKnown>(); }
};

bool isMask(Type type) { return isa<MaskType>(type); }

} // namespace

MaskForm formOf(Operation *op) { return cast<MaskOpInterface>(op).form(); }

void refuseUnansweredForms(MLIRContext *context) {
  // To append a registry would apply it at once, which MLIR cannot do while a dialect is being loaded.
  const_cast<DialectRegistry &>(context->getDialectRegistry()).addExtensions<FormsAreKnown>();
}

LogicalResult verifyForm(Operation *op) {
  const auto masks = size_t(llvm::count_if(op->getOperandTypes(), isMask));
  if (op->getNumResults() != 1 || !isMask(op->getResult(0).getType()))
    return op->emitOpError("expected one result, a mask");
  switch (formOf(op)) {
  case MaskForm::Unanswered:
    break; // refused with its dialect
  case MaskForm::Leaf:
    return masks == 0 ? success() : op->emitOpError("expected no mask among the operands of a leaf");
  case MaskForm::All:
  case MaskForm::Any:
  case MaskForm::ByHeads:
    return masks == op->getNumOperands() ? success() : op->emitOpError("expected operands that are masks");
  case MaskForm::Inverse:
    return masks == 1 && op->getNumOperands() == 1 ? success() : op->emitOpError("expected one operand, a mask");
  case MaskForm::Pullback:
    return masks == 1 && isMask(op->getOperand(0).getType())
               ? success()
               : op->emitOpError("expected one mask, the first operand of a pullback");
  }
  llvm_unreachable("a form that is not refused");
}

} // namespace heddle::attn
