// What a call gives the arguments of a pattern.
#include "runtime/Core/CallChecks.h"

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

bool isSize(const heddle_operand &operand) {
  return operand.kind == HEDDLE_OPERAND_INT || operand.kind == HEDDLE_OPERAND_FLOAT;
}

// "run-time size number 3"
std::string nameOf(bool isSize, int64_t number) {
  return std::string(isSize ? "run-time size" : "pointer") + " number " + num(number);
}

bool has(uint64_t numbers, int64_t number) {
  return number >= 0 && number < kMaxArguments && (numbers >> number & 1) != 0;
}

Status checkOne(const OperandNumbers &known, const heddle_operand &operand, const CallRules &rules, bool hasWork,
                GivenOperands &given) {
  if (!isSize(operand) && operand.kind != HEDDLE_OPERAND_POINTER)
    return Status::unsupported("attention arguments: operand " + num(operand.id) +
                               ": no kernel takes operands of kind " + num(operand.kind));
  if (!has(isSize(operand) ? known.sizes : known.pointers, operand.id))
    return badArguments("operands: the pattern has no " + nameOf(isSize(operand), operand.id));
  uint64_t &seen = isSize(operand) ? given.sizes : given.pointers;
  if (has(seen, operand.id))
    return badArguments("operands: " + nameOf(isSize(operand), operand.id) + " is given twice");
  seen |= uint64_t(1) << operand.id;
  const bool isNull = operand.kind == HEDDLE_OPERAND_POINTER && !operand.value.ptr;
  if (isNull && hasWork && has(known.neededPointers, operand.id))
    return badArguments("operands: " + nameOf(false, operand.id) + ": expected " + rules.memory + ", got null");
  return {};
}

Status checkMissing(bool isSize, uint64_t missing) {
  if (missing)
    return badArguments("operands: " + nameOf(isSize, __builtin_ctzll(missing)) + " is missing");
  return {};
}

} // namespace

Status checkOperands(const OperandNumbers &known, const heddle_attention_args &args, const CallRules &rules,
                     bool hasWork, GivenOperands &given) {
  if (args.operand_count > 2 * uint64_t(kMaxArguments) || (args.operand_count > 0 && !args.operands))
    return badArguments("operands: expected at most " + num(2 * kMaxArguments) + " with an address, got " +
                        num(int64_t(args.operand_count)));
  for (uint64_t i = 0; i < args.operand_count; ++i)
    HEDDLE_TRY(checkOne(known, args.operands[i], rules, hasWork, given));
  HEDDLE_TRY(checkMissing(true, known.neededSizes & ~given.sizes));
  return checkMissing(false, known.neededPointers & ~given.pointers);
}

Status checkGradientList(const heddle_attention_args &args) {
  if (args.gradient_count > uint64_t(kMaxArguments) || (args.gradient_count > 0 && !args.gradients))
    return badArguments("gradients: expected at most " + num(kMaxArguments) + " with an address, got " +
                        num(int64_t(args.gradient_count)));
  return {};
}

Status checkGradient(const heddle_gradient &gradient, const CallRules &rules, bool hasWork, uint64_t &seen) {
  const std::string which = "gradients: argument " + num(gradient.id) + ": ";
  if (has(seen, gradient.id))
    return badArguments(which + "is given twice");
  seen |= uint64_t(1) << gradient.id;
  if (gradient.reserved != 0)
    return Status::unsupported("attention arguments: " + which + "the reserved field is not zero");
  const bool isMissing = !gradient.ptr && hasWork;
  if (isMissing || reinterpret_cast<uintptr_t>(gradient.ptr) % sizeof(float) != 0)
    return badArguments(which + "expected " + rules.memory + " for floats, got " +
                        (gradient.ptr ? "an unaligned address" : "null"));
  return {};
}

} // namespace heddle
