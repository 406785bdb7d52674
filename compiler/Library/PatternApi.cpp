//===- PatternApi.cpp - patterns of the C interface, and attention on the CPU -===//
#include "codegen/Cpu/CpuKinds.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Library/EmbeddedPattern.h"
#include "runtime/Api/Handles.h"
#include "runtime/Core/CallMemory.h"
#include "runtime/Core/VersionedStruct.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

using namespace heddle;

namespace {

Status openPattern(const std::string &text, const char *label, const char *name, heddle_pattern **pattern) {
  HEDDLE_ASSIGN(std::shared_ptr<EmbeddedPattern> made, EmbeddedPattern::create(text, label, name ? name : ""));
  *pattern = new heddle_pattern{std::move(made)};
  return {};
}

/// Sizes by the table of roles.
void setCallSizes(const LaunchSymbols &symbols, CpuCall &call) {
  call.batch = int32_t(symbols[LaunchSymbol::batch]);
  for (RoleExtent extent : {RoleExtent::seqlenQ, RoleExtent::seqlenK, RoleExtent::heads, RoleExtent::kvHeads,
                            RoleExtent::headDim, RoleExtent::valueDim})
    call.sizeOf(extent) = int32_t(symbols[symbolOf(extent)]);
}

/// One call through the C interface, checked in the order in which launches are.
class HostCall {
public:
  HostCall(const Kind &kind, EmbeddedPattern &pattern) : pattern(pattern), rules(kind) {
    rules.memory = "host memory";
    rules.alignment = 1;
    rules.needsAllResults = false;
  }

  Status read(const heddle_attention_args &given) {
    HEDDLE_TRY(readArguments(given, args));
    HEDDLE_TRY(checkForeign(*rules.kind, args));
    HEDDLE_TRY(readRoles());
    HEDDLE_TRY(checkScale(args.scale));
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
    HEDDLE_ASSIGN(std::shared_ptr<const JitPattern> code, pattern.machineCode(rules.kind->walk()));
    call.pattern = code.get();
    return cpuFunctionOf(rules.kind->base)(call);
  }

private:
  bool hasWork() const { return call.batch != 0 && call.heads != 0 && (call.seqlenQ != 0 || rules.kind->isBackward()); }

  Status readRoles() {
    const RoleSpec &first = specOf(rules.kind->roles().front().role);
    const int32_t code = tensorOf(args, first.role).dtype;
    const std::optional<DType> dtype = dtypeOfCode(code);
    if (!dtype)
      return badArguments(std::string(first.name) + ": " + expectedElement(&ElementTraits::isOfCalls, code));
    rules.elements = call.elements = CallElements(*dtype);
    call.accumulates = rules.kind->accumulates;
    CallSizes sizes(symbols);
    HEDDLE_TRY(checkRoles(rules, args, sizes, symbols));
    setCallSizes(symbols, call);
    for (const KindRole &role : rules.kind->roles()) {
      call.give(role.role, addressOf(args, role.role));
      if (specOf(role.role).form != RoleForm::tensor)
        continue;
      const heddle_tensor &tensor = tensorOf(args, role.role);
      call.stride[size_t(role.role)] = CpuStrides{tensor.stride[0], tensor.stride[1], tensor.stride[2]};
    }
    return {};
  }

  Status readOperands() {
    const OperandNumbers numbers = pattern.operandNumbers();
    GivenOperands given;
    HEDDLE_TRY(checkOperands(numbers, args, rules, hasWork(), given));
    HEDDLE_ASSIGN(words, pattern.parameters(args.operands, args.operand_count, /*needsLengths=*/true));
    symbols.params = words.data();
    symbols.paramCount = int64_t(words.size());
    HEDDLE_TRY(pattern.checkWords(symbols));
    call.params.assign(words.begin(), words.end());
    for (uint64_t left = numbers.pointers; left; left &= left - 1)
      for (uint64_t i = 0; i < args.operand_count; ++i)
        if (args.operands[i].kind == HEDDLE_OPERAND_POINTER && args.operands[i].id == __builtin_ctzll(left))
          call.operands.push_back(args.operands[i].value.ptr);
    return hasWork() ? pattern.checkIntegers(call) : Status();
  }

  /// Of numbers and tensors of the pattern; the call has its sizes.
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
    for (uint64_t left = hasWork() ? pattern.operandNumbers().pointers : 0; left; left &= left - 1) {
      const int number = __builtin_ctzll(left);
      more.addOperand({number, call.operands[operand++], pattern.bytesOf(number, call)});
    }
    for (const CpuCall::ArgumentGradient &gradient : call.argumentGradients)
      more.addGradient({gradient.argument, gradient.address, gradient.elements * int64_t(sizeof(float))});
    return more;
  }

  EmbeddedPattern &pattern;
  CallRules rules;
  heddle_attention_args args;
  LaunchSymbols symbols;
  std::vector<int64_t> words;
  CpuCall call;
};

Status compute(const Kind &kind, EmbeddedPattern &pattern, const heddle_attention_args &given, int32_t threads) {
  HostCall call(kind, pattern);
  HEDDLE_TRY(call.read(given));
  return call.compute(threads);
}

/// Of calls that walk a pattern. The arguments name the gradients of others.
Result<Kind> kindOf(const char *what, const char *given) {
  HEDDLE_ASSIGN(const Kind kind, Kind::parse(given ? given : "forward"));
  if (kind.walksPattern() && kind.gradientsOf.empty())
    return kind;
  std::string known;
  for (const Kind &other : Kind::all())
    if (other.walksPattern())
      known += (known.empty() ? "" : ", ") + other.name();
  return Status::unsupported(std::string(what) + ": kind: expected one of " + known + ", got " + kind.str());
}

} // namespace

extern "C" {

heddle_status heddle_pattern_parse(const char *text, const char *label, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!text || !pattern)
      return missing("parse pattern", text ? "pattern" : "text");
    return openPattern(text, label ? label : "pattern", name, pattern);
  });
}

heddle_status heddle_pattern_read(const char *path, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!path || !pattern)
      return missing("read pattern", path ? "pattern" : "path");
    HEDDLE_ASSIGN(std::string text, PatternFile::readText(path));
    return openPattern(text, path, name, pattern);
  });
}

heddle_status heddle_pattern_get_info(const heddle_pattern *pattern, heddle_pattern_info *info) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern info", "pattern", pattern));
    if (!info)
      return missing("pattern info", "info");
    return writeVersioned("pattern info", pattern->pattern->info(), offsetof(heddle_pattern_info, name), *info);
  });
}

heddle_status heddle_pattern_get_argument(const heddle_pattern *pattern, int32_t index,
                                          heddle_pattern_argument *argument) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern argument", "pattern", pattern));
    if (!argument)
      return missing("pattern argument", "argument");
    const std::vector<heddle_pattern_argument> &all = pattern->pattern->arguments();
    if (index < 0 || size_t(index) >= all.size())
      return Status::invalidArgument("pattern argument: index: expected 0 to " +
                                     std::to_string(int64_t(all.size()) - 1) + ", got " + std::to_string(index));
    return writeVersioned("pattern argument", all[size_t(index)], offsetof(heddle_pattern_argument, name), *argument);
  });
}

void heddle_pattern_close(heddle_pattern *pattern) { closeHandle(pattern); }

heddle_status heddle_cpu_run(const heddle_pattern *pattern, const char *kind, const heddle_attention_args *args,
                             int32_t threads) {
  constexpr const char *what = "call on the CPU";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!args)
      return missing(what, "args");
    if (threads < 0)
      return Status::invalidArgument(std::string(what) + ": threads: expected 0 or more, got " +
                                     std::to_string(threads));
    HEDDLE_ASSIGN(const Kind known, kindOf(what, kind));
    return compute(known, *pattern->pattern, *args, threads);
  });
}

heddle_status heddle_cpu_check(const heddle_pattern *pattern, const char *kind, const heddle_attention_args *args) {
  constexpr const char *what = "check on the CPU";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!args)
      return missing(what, "args");
    HEDDLE_ASSIGN(const Kind known, kindOf(what, kind));
    return HostCall(known, *pattern->pattern).read(*args);
  });
}

} // extern "C"
