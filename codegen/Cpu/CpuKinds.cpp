//===- CpuKinds.cpp - calls of every kind on the CPU ----------------------===//
#include "codegen/Cpu/CpuKinds.h"

namespace heddle {

#define HEDDLE_CPU_KIND(identifier, ...) Status identifier##OnCpu(const CpuCall &call);
HEDDLE_KINDS(HEDDLE_CPU_KIND)
#undef HEDDLE_CPU_KIND

CpuFunction cpuFunctionOf(const KindSpec &kind) {
  static constexpr CpuFunction functions[] = {
#define HEDDLE_CPU_KIND(identifier, ...) identifier##OnCpu,
      HEDDLE_KINDS(HEDDLE_CPU_KIND)
#undef HEDDLE_CPU_KIND
  };
  return functions[&kind - kinds().data()];
}

Status forwardOnCpu(const CpuCall &call) {
  CpuAttentionArgs args = call;
  args.q = call.as<void>(Role::q);
  args.k = call.as<void>(Role::k);
  args.v = call.as<void>(Role::v);
  args.out = call.as<void>(Role::out);
  args.lse = call.as<float>(Role::lse);
  args.carryOut = call.as<float>(Role::carryOut);
  args.carryLse = call.as<float>(Role::carryLse);
  args.qStride = denseStrides(call.seqlenQ, call.heads, call.headDim);
  args.kStride = denseStrides(call.seqlenK, call.kvHeads, call.headDim);
  args.vStride = denseStrides(call.seqlenK, call.kvHeads, call.valueDim);
  args.outStride = denseStrides(call.seqlenQ, call.heads, call.valueDim);
  return runAttention(*call.pattern, args).status();
}

} // namespace heddle
