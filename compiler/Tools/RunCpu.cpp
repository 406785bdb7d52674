#include "codegen/Choose/RatesOf.h"
#include "codegen/Cpu/CpuKinds.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/RunTarget.h"
#include "dialect/IR/PatternOperands.h"

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

CpuCall cpuCallOf(const RunCall &call, RunResult &result) {
  CpuCall cpu;
  cpu.elements = call.inputs.elements(call.outDType());
  cpu.adds = call.inputs.kind.adds, cpu.hasKeyMajorValues = call.inputs.kind.hasKeyMajorValues;
  for (const RoleSpec &role : call.inputs.given())
    cpu.give(role.role, call.inputs.of(role.role).data.data());
  for (const RoleSpec &role : call.inputs.written())
    cpu.give(role.role, result.of(role.role).data.data());
  setSizes(call.inputs.sizes, cpu);
  const attn::ProblemSizes positions = sizesOf(call.file, call.shape);
  cpu.qOrigin = positions.qOrigin;
  cpu.kOrigin = positions.kOrigin;
  cpu.scale = call.scale;
  for (const OperandTensor &tensor : call.shape.operands)
    if (tensor)
      cpu.operands.push_back(tensor.address());
  cpu.params.assign(call.shape.parameters.begin(), call.shape.parameters.end());
  if (call.inputs.kind.hasPartsOfSequences())
    cpu.wholes = wholesOf(call.file.pattern());
  return cpu;
}

/// Zeros of the shape of the argument, and where the call puts its gradient.
void giveArgumentGradients(const RunCall &call, RunResult &result, CpuCall &cpu) {
  attn::PatternOp pattern = call.file.pattern();
  const std::vector<int64_t> &gradientsOf = call.inputs.kind.gradientsOf;
  for (int64_t argument : gradientsOf)
    result.argumentGradients.push_back(HostTensor::zeros(kAccumulator, gradientShape(call.shape, unsigned(argument))));
  for (size_t i = 0; i < gradientsOf.size(); ++i) {
    HostTensor &gradient = result.argumentGradients[i];
    const unsigned argument = unsigned(gradientsOf[i]);
    cpu.argumentGradients.push_back({int(argument), reinterpret_cast<float *>(gradient.data.data()),
                                     gradient.elements(),
                                     pattern.isOperand(argument) && attn::hasQueries(pattern, argument)});
  }
}

} // namespace

RunResult emptyResult(const RunCall &call) { return {resultsBefore(call.inputs, call.outDType()), {}, 0, {}, {}}; }

Result<RunResult> runOnCpu(const RunCall &call) {
  HEDDLE_TRY(checkElements(call.inputs.elements(call.outDType()), call.inputs.kind.takesScaledKeys()));
  HEDDLE_TRY(checkGradientElements(call.inputs.kind, call.inputs.elements(call.outDType())));
  HEDDLE_TRY(checkScaleRows(call.inputs.kind, call.inputs.elements(call.outDType())));
  HEDDLE_TRY(checkKeyMajor(call.inputs.kind, call.inputs.elements(call.outDType())));
  std::shared_ptr<const JitPattern> pattern;
  if (call.inputs.kind.walksPattern()) {
    HEDDLE_ASSIGN(pattern, compileForCpu(call.file, call.inputs.kind.walk()));
  }
  RunResult result = emptyResult(call);
  CpuCall cpu = cpuCallOf(call, result);
  cpu.pattern = pattern.get();
  giveArgumentGradients(call, result, cpu);
  auto start = std::chrono::steady_clock::now();
  {
    ElapsedTime elapsed;
    HEDDLE_TRY(cpuFunctionOf(call.inputs.kind.base)(cpu));
  }
  result.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  result.kernel = pattern ? "compiled for this machine's CPU" : "this machine's CPU";
  return result;
}

Status addFromForwardOnCpu(const RunCall &call, AttentionInputs &inputs) {
  return addFromForward(inputs, [&](const AttentionInputs &given) -> Result<RoleTensors> {
    HEDDLE_ASSIGN(RunResult forward, runOnCpu({call.file, given, call.shape, call.scale}));
    return RoleTensors(std::move(forward));
  });
}

} // namespace heddle::cli
