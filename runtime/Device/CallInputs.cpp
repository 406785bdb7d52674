// What plans find in a call: pointers by their sources; and what a plan asks of calls.
#include "runtime/Device/Arguments.h"

namespace heddle {
const void *CallInputs::pointer(const PointerSource &source) const {
  switch (source.kind) {
  case PointerSource::Kind::role:
    return address(Role(source.index));
  case PointerSource::Kind::operand:
    return operands[source.index];
  case PointerSource::Kind::gradient:
    return gradients[source.index];
  case PointerSource::Kind::region:
    break;
  }
  return static_cast<const unsigned char *>(args.workspace) + layout.offset[source.index];
}

// Kinds have something to write.
const void *CallInputs::mapBase(const PointerSource &source, const Kind &kind) const {
  const bool isOfEmpty = source.kind == PointerSource::Kind::role &&
                         specOf(Role(source.index)).form == RoleForm::tensor && isEmpty(tensor(Role(source.index)));
  if (!isOfEmpty)
    return pointer(source);
  for (const KindRole &known : kind.roles())
    if (includes(known.access, Access::write))
      return address(known.role);
  return nullptr;
}

Result<CallRequirements> CallRequirements::of(const LaunchPlan &plan, const KernelFamily &family) {
  CallRequirements needs;
  needs.paramCount = plan.paramCount();
  needs.serves = plan.serves;
  HEDDLE_ASSIGN(needs.shape, family.shape());
  needs.shape.kind = *plan.serves.kind;
  static_assert(kMaxArguments <= 64, "a bit for each argument");
  plan.forEachPointer([&](const PointerSource &source) {
    if (source.kind == PointerSource::Kind::operand)
      needs.operandMask |= uint64_t(1) << source.index;
    if (source.kind == PointerSource::Kind::gradient)
      needs.gradientMask |= uint64_t(1) << source.index;
  });
  const std::vector<bool> used = plan.usedParams();
  for (size_t i = 0; i < used.size(); ++i)
    needs.sizeMask |= uint64_t(used[i]) << i;
  return needs;
}

} // namespace heddle
