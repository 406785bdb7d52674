//===- RunCpu.cpp - one attention call on this machine's processors ---------===//
#include "codegen/Cpu/CpuAttention.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/RunTarget.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace heddle::cli {
namespace {

/// A line on stderr with the seconds so far, from the second second on; gone when this is.
class ElapsedTime {
public:
  ElapsedTime() {
    if (::isatty(STDERR_FILENO))
      ticker = std::thread([this] { tick(); });
  }
  ~ElapsedTime() {
    if (!ticker.joinable())
      return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    over.notify_one();
    ticker.join();
  }

private:
  void tick() {
    std::unique_lock<std::mutex> lock(mutex);
    int seconds = 0;
    while (!over.wait_for(lock, std::chrono::seconds(1), [this] { return isOver; }))
      if (++seconds > 1 && !isQuiet())
        std::fprintf(stderr, "\rheddle: computing on the CPU, %d s ", seconds);
    if (seconds > 1 && !isQuiet())
      std::fprintf(stderr, "\r\033[K");
  }

  std::mutex mutex;
  std::condition_variable over;
  bool isOver = false;
  std::thread ticker;
};

CpuAttentionArgs argumentsOf(const RunCall &call, RunResult &result) {
  const AttentionSizes &sizes = call.inputs.sizes;
  CpuAttentionArgs args;
  args.dtype = call.inputs.dtype();
  args.q = call.inputs.q.data.data();
  args.k = call.inputs.k.data.data();
  args.v = call.inputs.v.data.data();
  args.out = result.out.data.data();
  args.lse = reinterpret_cast<float *>(result.lse.data.data());
  args.qStride = denseStrides(sizes.seqlenQ, sizes.heads, sizes.headDim);
  args.kStride = denseStrides(sizes.seqlenK, sizes.kvHeads, sizes.headDim);
  args.vStride = denseStrides(sizes.seqlenK, sizes.kvHeads, sizes.valueDim);
  args.outStride = denseStrides(sizes.seqlenQ, sizes.heads, sizes.valueDim);
  args.batch = sizes.batch;
  args.heads = sizes.heads;
  args.kvHeads = sizes.kvHeads;
  args.seqlenQ = sizes.seqlenQ;
  args.seqlenK = sizes.seqlenK;
  args.headDim = sizes.headDim;
  args.valueDim = sizes.valueDim;
  attn::ProblemSizes positions = sizesOf(call.file, call.shape);
  args.qOrigin = positions.qOrigin;
  args.kOrigin = positions.kOrigin;
  args.scale = call.scale;
  for (const OperandTensor &tensor : call.shape.operands)
    if (tensor)
      args.operands.push_back(tensor.address());
  args.params.assign(call.shape.parameters.begin(), call.shape.parameters.end());
  return args;
}

} // namespace

RunResult emptyResult(const RunCall &call) {
  const AttentionSizes &sizes = call.inputs.sizes;
  RunResult result;
  for (const RoleSpec &role : rolesOf(Access::write)) {
    const bool isFloat = call.outFloat32 || role.element == RoleElement::fp32;
    result.of(role.role) = HostTensor::zeros(isFloat ? DType::fp32 : call.inputs.dtype(), sizes.shapeOf(role));
  }
  return result;
}

Result<RunResult> runOnCpu(const RunCall &call) {
  HEDDLE_ASSIGN(const std::shared_ptr<const JitPattern> pattern, compileForCpu(call.file));
  RunResult result = emptyResult(call);
  CpuAttentionArgs args = argumentsOf(call, result);
  auto start = std::chrono::steady_clock::now();
  {
    ElapsedTime elapsed;
    HEDDLE_TRY(runAttention(*pattern, args).status());
  }
  result.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  result.kernel = "compiled for this machine's CPU";
  return result;
}

} // namespace heddle::cli
