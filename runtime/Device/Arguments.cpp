#include "runtime/Device/Arguments.h"
#include "runtime/Core/CallMemory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle {
namespace {

CallRules rulesOf(const CallRequirements &needs) {
  CallRules rules(needs.shape.kind);
  rules.elements = needs.shape.elements;
  return rules;
}

bool hasWork(const CallRequirements &needs, const CallInputs &inputs) {
  return !isEmpty(inputs.tensor(needs.shape.kind.roles().front().role));
}

Status checkServed(const CallRequirements &needs, const CallInputs &inputs) {
  for (const KindRole &known : needs.shape.kind.roles())
    if (known.presence != Presence::scale && inputs.address(known.role) && !needs.serves.has(known.role))
      return Status::unsupported("attention arguments: this kernel does not take " +
                                 std::string(specOf(known.role).name) + "; leave it null");
  return {};
}

Status checkSizes(const CallRequirements &needs, const CallRules &rules, CallInputs &inputs) {
  CallSizes sizes(inputs.symbols);
  sizes.set(LaunchSymbol::headDim, needs.shape.headDim);
  sizes.set(LaunchSymbol::valueDim, needs.shape.valueDim);
  HEDDLE_TRY(checkRoles(rules, inputs.args, sizes, inputs.symbols));
  // Kernels know both, or neither.
  if (inputs.symbols[LaunchSymbol::tables] > 1 && !needs.serves.has(Role::cuSeqlensK))
    return Status::unsupported("attention arguments: this kernel is of an older version, without tables for each kv "
                               "head; leave tables 0");
  return {};
}

// Kernels read a number from the bits of its slot.
int64_t wordOf(double number) {
  float rounded = static_cast<float>(number);
  int32_t word;
  std::memcpy(&word, &rounded, sizeof word);
  return word;
}

uint64_t firstBits(int64_t count) { return count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1; }

void setOperands(CallInputs &inputs) {
  for (uint64_t i = 0; i < inputs.args.operand_count; ++i) {
    const heddle_operand &operand = inputs.args.operands[i];
    if (operand.kind == HEDDLE_OPERAND_POINTER)
      inputs.operands[operand.id] = operand.value.ptr;
    else
      inputs.runtimeSizes[operand.id] =
          operand.kind == HEDDLE_OPERAND_INT ? operand.value.i64 : wordOf(operand.value.f64);
  }
}

Status readOperands(const CallRequirements &needs, const CallRules &rules, CallInputs &inputs) {
  const OperandNumbers known = {firstBits(needs.paramCount), needs.operandMask, needs.sizeMask, needs.operandMask};
  GivenOperands given;
  HEDDLE_TRY(checkOperands(known, inputs.args, rules, hasWork(needs, inputs), given));
  setOperands(inputs);
  inputs.symbols.params = inputs.runtimeSizes;
  inputs.symbols.paramCount = needs.paramCount;
  const Status bounds = checkBounds(needs.serves.bounds, inputs.symbols, given.sizes);
  return bounds.isOk() ? bounds : badArguments("operands: " + bounds.message());
}

void setOtherSymbols(int64_t smCount, CallInputs &inputs) {
  const heddle_attention_args &args = inputs.args;
  LaunchSymbols &symbols = inputs.symbols;
  symbols[LaunchSymbol::qOrigin] = args.q_origin;
  symbols[LaunchSymbol::kOrigin] = args.k_origin;
  symbols[LaunchSymbol::smCount] = smCount;
  for (LaunchSymbol rows : {LaunchSymbol::roundRows, LaunchSymbol::lseRows, LaunchSymbol::carryRows})
    symbols[rows] = symbols[LaunchSymbol::seqlenQ];
}

} // namespace

Status checkArguments(const CallRequirements &needs, int64_t smCount, const heddle_attention_args &args,
                      CallInputs &inputs) {
  const CallRules rules = rulesOf(needs);
  HEDDLE_TRY(readArguments(args, inputs.args));
  HEDDLE_TRY(checkForeign(needs.shape.kind, inputs.args));
  HEDDLE_TRY(checkServed(needs, inputs));
  HEDDLE_TRY(checkSizes(needs, rules, inputs));
  HEDDLE_TRY(checkScale(inputs.args.scale));
  HEDDLE_TRY(checkOrigins({needs.serves.qOrigin, needs.serves.keyOriginStep}, inputs.args, inputs.symbols));
  setOtherSymbols(smCount, inputs);
  HEDDLE_TRY(readOperands(needs, rules, inputs));
  HEDDLE_TRY(readGradients(needs, rules, inputs));
  double scale = inputs.args.scale != 0 ? double(inputs.args.scale)
                                        : 1 / std::sqrt(double(std::max<int64_t>(needs.shape.headDim, 1)));
  inputs.scaleLog2 = float(scale * 1.4426950408889634074);
  return {};
}

Status checkMemory(const CallRequirements &needs, const CallInputs &inputs) {
  MorePlaces more;
  more.workspace = inputs.args.workspace;
  more.workspaceBytes = inputs.layout.totalBytes;
  const int64_t known = hasWork(needs, inputs); // one byte
  for (uint64_t left = needs.operandMask; left; left &= left - 1)
    more.addOperand({__builtin_ctzll(left), inputs.operands[__builtin_ctzll(left)], known});
  for (uint64_t left = needs.gradientMask; left; left &= left - 1)
    more.addGradient({__builtin_ctzll(left), inputs.gradients[__builtin_ctzll(left)], known});
  return checkApart(rulesOf(needs), inputs.args, inputs.symbols, more);
}

} // namespace heddle
