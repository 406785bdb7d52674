#include "compiler/Library/HostCall.h"

#include "codegen/Cpu/CpuKinds.h"
#include "codegen/Cpu/Decode.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Session/CompileSession.h"
#include "runtime/Core/CallMemory.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

/// One call through the C interface, checked in the order in which launches are.
class HostCall {
public:
  HostCall(const KindText &kind, CompiledPattern &pattern) : pattern(pattern), kind(kind), rules(kind.kind) {
    rules.memory = "host memory";
    rules.alignment = 1;
    rules.needsAllResults = false;
  }

  Status read(const heddle_attention_args &given) {
    HEDDLE_TRY(readArguments(given, args));
    HEDDLE_TRY(checkForeign(*rules.kind, args));
    HEDDLE_TRY(readRoles());
    HEDDLE_TRY(checkScale(args.scale));
    HEDDLE_TRY(checkSequenceValues(*rules.roles, args, symbols));
    HEDDLE_TRY(checkArrayNumbers());
    HEDDLE_TRY(checkOrigins({pattern.originRule(), 1}, args, symbols));
    call.qOrigin = int32_t(pattern.queryOrigin(args.q_origin, call.seqlenQ, call.seqlenK));
    call.kOrigin = int32_t(args.k_origin);
    symbols[LaunchSymbol::qOrigin] = call.qOrigin;
    symbols[LaunchSymbol::kOrigin] = call.kOrigin;
    call.scale = args.scale != 0 ? args.scale : float(1 / std::sqrt(double(std::max(call.headDim, 1))));
    HEDDLE_TRY(readOperands());
    HEDDLE_TRY(readGradients());
    return checkApart(rules, args, symbols, morePlaces());
  }

  Status compute(int32_t threads) {
    call.threads = threads;
    if (!hasWork()) {
      for (const CpuCall::ArgumentGradient &gradient : call.argumentGradients)
        std::fill_n(gradient.address, gradient.elements, 0.0f);
      return {};
    }
    std::shared_ptr<const JitPattern> code;
    if (rules.kind->walksPattern()) {
      HEDDLE_ASSIGN(code, pattern.machineCode(rules.kind->walk()));
    }
    call.pattern = code.get();
    return cpuFunctionOf(rules.kind->base)(call);
  }

private:
  bool hasWork() const {
    if (!rules.kind->walksPattern())
      return call.batch != 0;
    return call.batch != 0 && call.heads != 0 && (call.seqlenQ != 0 || rules.kind->isBackward());
  }

  Status readRoles() {
    const RoleSpec &first = specOf(rules.kind->roles().front().role);
    const int32_t code = tensorOf(args, first.role).dtype;
    const std::optional<DType> dtype = dtypeOfCode(code);
    if (!dtype)
      return badArguments(std::string(first.name) + ": " + expectedElement(&ElementTraits::isOfCalls, code));
    rules.elements = call.elements = kind.elements(*dtype);
    HEDDLE_TRY(checkElements(call.elements, rules.kind->takesScaledKeys()));
    HEDDLE_TRY(checkGradientElements(*rules.kind, call.elements));
    HEDDLE_TRY(checkScaleRows(*rules.kind, call.elements));
    HEDDLE_TRY(checkKeyMajor(*rules.kind, call.elements));
    call.adds = rules.kind->adds, call.hasKeyMajorValues = rules.kind->hasKeyMajorValues;
    CallSizes sizes(symbols);
    HEDDLE_TRY(checkRoles(rules, args, sizes, symbols));
    HEDDLE_TRY(checkParts());
    call.setSizes([this](RoleExtent extent) { return symbols[symbolOf(extent)]; });
    for (const KindRole &role : rules.kind->roles()) {
      call.give(role.role, addressOf(args, role.role));
      if (specOf(role.role).form != RoleForm::tensor)
        continue;
      const heddle_tensor &tensor = tensorOf(args, role.role);
      call.stride[size_t(role.role)] = CpuStrides{tensor.stride[0], tensor.stride[1], tensor.stride[2]};
    }
    return {};
  }

  Status checkParts() const {
    for (const KindRole &known : *rules.roles)
      if (known.presence == Presence::part && addressOf(args, known.role) && pattern.wholes().empty())
        return badPart(known.role, pattern.info().name);
    return {};
  }

  Status checkArrayNumbers() const {
    for (const KindRole &known : *rules.roles) {
      if (const void *numbers = addressOf(args, known.role))
        HEDDLE_TRY(checkNumbers(known, numbers, elementsOf(specOf(known), symbols)));
    }
    return {};
  }

  Status readOperands() {
    const OperandNumbers numbers = pattern.operandNumbers(*rules.kind);
    GivenOperands given;
    HEDDLE_TRY(checkOperands(numbers, args, rules, hasWork(), given));
    std::optional<int64_t> whole; // of the longest sequence; each has its own
    if (rules.kind->hasPartsOfSequences())
      call.wholes = pattern.wholes(), whole = call.seqlenK;
    HEDDLE_ASSIGN(words, pattern.parameters(args.operands, args.operand_count, /*needsLengths=*/true, whole));
    symbols.params = words.data();
    symbols.paramCount = int64_t(words.size());
    HEDDLE_TRY(rules.kind->hasPages() ? pattern.checkPages() : pattern.checkWords(symbols));
    call.params.assign(words.begin(), words.end());
    for (uint64_t left = numbers.pointers; left; left &= left - 1)
      for (uint64_t i = 0; i < args.operand_count; ++i)
        if (args.operands[i].kind == HEDDLE_OPERAND_POINTER && args.operands[i].id == __builtin_ctzll(left))
          call.operands.push_back(args.operands[i].value.ptr);
    return !hasWork() ? Status() : rules.kind->hasPages() ? checkEachSequence() : pattern.checkIntegers(call);
  }

  /// What arguments of the pattern must be is asked of every sequence: its sizes are those of the call.
  Status checkEachSequence() {
    return forEachSequence(call, [this](const CpuCall &own) {
      LaunchSymbols its = symbols;
      its[LaunchSymbol::seqlenQ] = own.seqlenQ, its[LaunchSymbol::seqlenK] = own.seqlenK;
      its[LaunchSymbol::qOrigin] = own.qOrigin, its[LaunchSymbol::kOrigin] = own.kOrigin;
      const std::vector<int64_t> itsWords(own.params.begin(), own.params.end());
      its.params = itsWords.data();
      HEDDLE_TRY(pattern.checkWords(its));
      return pattern.checkIntegers(own);
    });
  }

  /// Reads those of numbers and tensors of the pattern; the call has its sizes.
  Status readGradients() {
    if (args.gradient_count > 0 && !rules.kind->isBackward())
      return Status::unsupported("attention arguments: a call of kind " + rules.kind->name() +
                                 " has no gradients; leave it zero");
    HEDDLE_TRY(checkGradientList(args));
    uint64_t seen = 0;
    for (uint64_t i = 0; i < args.gradient_count; ++i) {
      HEDDLE_ASSIGN(call.argumentGradients.emplace_back(), pattern.gradientOf(args.gradients[i], call));
      HEDDLE_TRY(checkGradient(args.gradients[i], rules, /*hasWork=*/true, seen));
    }
    return {};
  }

  MorePlaces morePlaces() const {
    MorePlaces more;
    size_t operand = 0;
    for (uint64_t left = hasWork() ? pattern.operandNumbers(*rules.kind).pointers : 0; left; left &= left - 1) {
      const int number = __builtin_ctzll(left);
      more.addOperand({number, call.operands[operand++], pattern.bytesOf(number, call)});
    }
    for (const CpuCall::ArgumentGradient &gradient : call.argumentGradients)
      more.addGradient({gradient.argument, gradient.address, gradient.elements * int64_t(sizeof(float))});
    return more;
  }

  CompiledPattern &pattern;
  const KindText &kind;
  CallRules rules;
  heddle_attention_args args;
  LaunchSymbols symbols;
  std::vector<int64_t> words;
  CpuCall call;
};

} // namespace

Status runOnHost(const KindText &kind, CompiledPattern &pattern, const heddle_attention_args &args, int32_t threads) {
  HostCall call(kind, pattern);
  HEDDLE_TRY(call.read(args));
  return call.compute(threads);
}

Status checkOnHost(const KindText &kind, CompiledPattern &pattern, const heddle_attention_args &args) {
  return HostCall(kind, pattern).read(args);
}

} // namespace heddle
