// What the device tests share: the recording driver as the process's driver, and a kernel whose parameter
// block is the one of docs/architecture.md section 3.
#ifndef HEDDLE_TESTS_UNIT_DEVICE_FIXTURE_H
#define HEDDLE_TESTS_UNIT_DEVICE_FIXTURE_H

#include "support/Places.h"
#include "fake_cuda/FakeCuda.h"
#include "runtime/Device/Kernel.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace heddle::test {

// Every test of these files starts from a fresh recording and no current context.
inline void startFake() {
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", test::places().fakeCuda, 1);
  fake::fakeCudaReset();
  fake::fakeCudaSetCurrent(-1);
}

inline void require(const Status &status) { REQUIRE_MESSAGE(status.isOk(), status.str()); }

template <class T> T require(Result<T> result) {
  REQUIRE_MESSAGE(result.isOk(), result.status().str());
  return result.take();
}

// The forward parameter block as a C++ compiler lays it out.
struct ForwardParams {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const float *carryOut, *carryLse;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t param[2];
};

inline LaunchPlan emptyPlan() {
  using Symbol = LaunchSymbol;
  LaunchPlan plan{PlanService(Kind())};
  plan.serves.qOrigin = QOriginRule::end;
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid = {ceilDiv(Symbol::seqlenQ, 128) * LaunchExpr(Symbol::heads) * LaunchExpr(Symbol::batch), 1, 1};
  launch.block = 128;
  launch.sharedBytes = 65536;
  for (Role role : {Role::q, Role::k, Role::v, Role::out, Role::lse, Role::carryOut, Role::carryLse})
    launch.appendPointer(role);
  for (Role role : {Role::q, Role::k, Role::v, Role::out})
    for (StrideDim dim : {StrideDim::batch, StrideDim::row, StrideDim::head})
      launch.appendI64(strideOf(role, dim));
  for (Symbol symbol : {Symbol::batch, Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK})
    launch.appendI32(symbol);
  launch.appendI32(LaunchExpr(Symbol::seqlenK) - LaunchExpr(Symbol::seqlenQ)); // q_origin = end
  launch.appendI32(Symbol::kOrigin);
  launch.appendScaleLog2();
  launch.appendI32(LaunchExpr::param(0));
  launch.appendI32(LaunchExpr::param(1));
  return plan;
}

inline KernelRecord forwardRecord(const std::string &contentKey = "kernel-1") {
  KernelRecord record;
  record.pattern = std::string(64, 'a');
  record.headDim = 64;
  record.valueDim = 128;
  record.generator = "g1";
  record.contentKey = contentKey;
  record.kernelArch = "sm_90";
  record.minDriver = 12000;
  record.plan = emptyPlan().str();
  record.cubin = "\x7f"
                 "ELF cubin";
  record.ptx = "// ptx";
  return record;
}

// Valid arguments for forwardRecord with made-up addresses; nothing is ever read through them.
struct ForwardCall {
  AttentionArgs args = makeAttentionArgs();
  heddle_operand operands[2] = {{0, HEDDLE_OPERAND_INT, {}}, {1, HEDDLE_OPERAND_INT, {}}};

  ForwardCall() {
    auto address = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
    args.q = contiguousTensor(address(0x1000000), DType::bf16, {2, 1000, 8, 64});
    args.k = contiguousTensor(address(0x2000000), DType::bf16, {2, 3000, 4, 64});
    args.v = contiguousTensor(address(0x3000000), DType::bf16, {2, 3000, 4, 128});
    args.out = contiguousTensor(address(0x4000000), DType::bf16, {2, 1000, 8, 128});
    args.lse = static_cast<float *>(address(0x5000000));
    args.scale = 0.5f;
    operands[0].value.i64 = 512;
    operands[1].value.i64 = -3;
    args.operands = operands;
    args.operand_count = 2;
  }
  ForwardCall(const ForwardCall &) = delete;
  ForwardCall &operator=(const ForwardCall &) = delete;
};

} // namespace heddle::test

#endif
