//===- DeviceProblem.cpp - one attention call on a GPU --------------------===//
#include "compiler/Measure/DeviceProblem.h"
#include "codegen/Target/FindArch.h"
#include "dialect/IR/PatternOperands.h"

#include <cmath>
#include <cstdio>

namespace heddle {

Result<const GpuArch *> archOf(const Device &device) {
  const std::string &name = device.info().identity.arch;
  int capability = 0;
  for (char digit : name.substr(name.find('_') + 1))
    if (digit >= '0' && digit <= '9')
      capability = capability * 10 + (digit - '0');
  return findGpuArchFor(capability / 10, capability % 10);
}

oracle::ReferenceRows referenceOf(const PatternFile &file, const ProblemShape &shape, const AttentionInputs &inputs,
                                  float scale, int64_t count) {
  attn::ProblemSizes sizes = sizesOf(file, shape);
  oracle::Problem problem{sizes.heads, sizes.seqlenQ, sizes.seqlenK, sizes.qOrigin, sizes.kOrigin, sizes.parameters, shape.operands};
  oracle::AttentionOracle definition(file.pattern(), problem, inputs, scale);
  bool hasPredicate = false; // evaluated through the context of the file, which serves one thread
  file.pattern()->walk([&](attn::PredicateOp) { hasPredicate = true; });
  return oracle::referenceRows(definition, oracle::sampleRows(inputs.sizes, count), inputs.dtype(), hasPredicate ? 1 : 0);
}

Result<void *> DeviceProblem::copyInput(const std::string &name, const void *data, int64_t bytes) {
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, std::max<int64_t>(bytes, 1)));
  HEDDLE_TRY(buffer.copyFrom(data, bytes));
  inputs.push_back(std::move(buffer));
  fingerprints.emplace_back(name, data, bytes);
  return inputs.back().data();
}

static heddle_operand sizeOperand(size_t argument, int64_t value) {
  heddle_operand operand{};
  operand.id = static_cast<int32_t>(argument);
  operand.kind = HEDDLE_OPERAND_INT;
  operand.value.i64 = value;
  return operand;
}

static heddle_operand pointerOperand(size_t argument, const void *address) {
  heddle_operand operand{};
  operand.id = static_cast<int32_t>(argument);
  operand.kind = HEDDLE_OPERAND_POINTER;
  operand.value.ptr = address;
  return operand;
}

Status DeviceProblem::bindArguments(const PatternFile &file, const ProblemShape &shape) {
  attn::PatternOp pattern = file.pattern();
  for (unsigned i = 0; i < shape.parameters.size(); ++i) {
    const bool isTensor = i < pattern.getNumArguments() && pattern.isOperand(i);
    if (!isTensor || attn::lengthDimension(pattern, i))
      operands.push_back(sizeOperand(i, shape.parameters[i]));
    if (!isTensor)
      continue;
    const OperandTensor &tensor = shape.operands.at(i);
    HEDDLE_ASSIGN(void *address, copyInput(pattern.getParameterName(i).str(), tensor.data->data(), tensor.data->size()));
    operands.push_back(pointerOperand(i, address));
  }
  return {};
}

Result<DeviceProblem> DeviceProblem::create(const Device &device, const PatternFile &file, const ProblemShape &shape,
                                            const AttentionInputs &inputs, float scale, std::optional<DType> outDType) {
  DeviceProblem problem(device);
  const AttentionSizes &sizes = problem.sizes = inputs.sizes;
  DType dtype = inputs.dtype();
  problem.outDType = outDType.value_or(dtype);
  HEDDLE_ASSIGN(void *q, problem.copyInput("q", inputs.q.data.data(), inputs.q.data.size()));
  HEDDLE_ASSIGN(void *k, problem.copyInput("k", inputs.k.data.data(), inputs.k.data.size()));
  HEDDLE_ASSIGN(void *v, problem.copyInput("v", inputs.v.data.data(), inputs.v.data.size()));
  int64_t rows = sizes.batch * sizes.seqlenQ * sizes.heads;
  HEDDLE_ASSIGN(problem.out, GuardedBuffer::allocate(device, "out", rows * sizes.valueDim * dtypeBytes(problem.outDType)));
  HEDDLE_ASSIGN(problem.lse, GuardedBuffer::allocate(device, "lse", rows * sizeof(float)));
  HEDDLE_TRY(problem.bindArguments(file, shape));
  AttentionArgs &args = problem.args = makeAttentionArgs();
  args.q = contiguousTensor(q, dtype, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.headDim);
  args.k = contiguousTensor(k, dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.headDim);
  args.v = contiguousTensor(v, dtype, sizes.batch, sizes.seqlenK, sizes.kvHeads, sizes.valueDim);
  args.out = contiguousTensor(problem.out.data(), problem.outDType, sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim);
  args.lse = static_cast<float *>(problem.lse.data());
  attn::ProblemSizes positions = sizesOf(file, shape);
  args.q_origin = positions.qOrigin;
  args.k_origin = positions.kOrigin;
  args.scale = scale;
  return problem;
}

Result<AttentionArgs> DeviceProblem::argumentsFor(const Kernel &kernel) {
  args.operands = operands.data();
  args.operand_count = operands.size();
  HEDDLE_ASSIGN(int64_t bytes, kernel.workspaceBytes(args));
  const int64_t largest = workspaces.empty() ? 0 : workspaces.back().bytes();
  if (bytes > largest) {
    HEDDLE_ASSIGN(GuardedBuffer larger, GuardedBuffer::allocate(device, "workspace", std::max(bytes, 2 * largest)));
    workspaces.push_back(std::move(larger));
  }
  AttentionArgs result = args;
  result.workspace = bytes > 0 ? workspaces.back().data() : nullptr;
  result.workspace_bytes = bytes;
  return result;
}

Status DeviceProblem::poison() {
  HEDDLE_TRY(out.poison());
  return lse.poison();
}

Status DeviceProblem::checkGuards() const {
  HEDDLE_TRY(out.checkGuards());
  HEDDLE_TRY(lse.checkGuards());
  for (const GuardedBuffer &workspace : workspaces)
    HEDDLE_TRY(workspace.checkGuards());
  return Status();
}

Status DeviceProblem::checkInputs() const {
  HEDDLE_TRY(device.synchronize());
  for (size_t i = 0; i < inputs.size(); ++i)
    HEDDLE_TRY(fingerprints[i].check(inputs[i]));
  return Status();
}

Result<oracle::RowResult> DeviceProblem::readRow(const oracle::RowId &id) const {
  HostTensor values = HostTensor::zeros(outDType, {sizes.valueDim});
  int64_t row = (id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head, bytes = values.data.size();
  HEDDLE_TRY(out.copyTo(values.data.data(), bytes, row * bytes));
  float logSum = 0;
  int64_t place = (id.batch * sizes.heads + id.head) * sizes.seqlenQ + id.row;
  HEDDLE_TRY(lse.copyTo(&logSum, sizeof logSum, place * sizeof logSum));
  oracle::RowResult result;
  for (float value : values.toFloats())
    result.out.push_back(value);
  result.lse = logSum;
  return result;
}

Result<oracle::VerifyReport> DeviceProblem::compare(const oracle::ReferenceRows &reference) const {
  HEDDLE_TRY(device.synchronize());
  HEDDLE_TRY(checkGuards());
  Status failure;
  oracle::VerifyReport report = oracle::compareRows(reference, [&](const oracle::RowId &id) {
    Result<oracle::RowResult> row = readRow(id);
    if (row)
      return row.take();
    failure = row.status();
    return oracle::RowResult{std::vector<double>(sizes.valueDim, std::nan("")), std::nan("")};
  });
  HEDDLE_TRY(failure);
  return report;
}

Status DeviceProblem::download(HostTensor &hostOut, HostTensor &hostLse) const {
  HEDDLE_TRY(device.synchronize());
  HEDDLE_TRY(out.copyTo(hostOut.data.data(), hostOut.data.size()));
  return lse.copyTo(hostLse.data.data(), hostLse.data.size());
}

Result<int64_t> DeviceProblem::countNaN() const {
  HostTensor hostOut = HostTensor::zeros(outDType, {sizes.batch, sizes.seqlenQ, sizes.heads, sizes.valueDim});
  HostTensor hostLse = HostTensor::zeros(DType::fp32, {sizes.batch, sizes.heads, sizes.seqlenQ});
  HEDDLE_TRY(download(hostOut, hostLse));
  int64_t count = 0;
  for (const HostTensor *tensor : {&hostOut, &hostLse})
    for (int64_t i = 0, end = tensor->elements(); i < end; ++i)
      count += std::isnan(tensor->get(i));
  return count;
}

Result<LaunchTimer> LaunchTimer::create(const Device &device, std::optional<double> limitSeconds) {
  constexpr int64_t kFlushOverL2 = 4; // several times the cache, so that nothing of the inputs stays
  int64_t bytes = std::max<int64_t>(device.info().l2Bytes, int64_t(1) << 20) * kFlushOverL2;
  HEDDLE_ASSIGN(DeviceBuffer flush, DeviceBuffer::allocate(device, bytes));
  HEDDLE_ASSIGN(DeviceEvent start, DeviceEvent::create(device));
  HEDDLE_ASSIGN(DeviceEvent stop, DeviceEvent::create(device));
  return LaunchTimer(device, limitSeconds, std::move(flush), std::move(start), std::move(stop));
}

Status LaunchTimer::wait() {
  if (!limitSeconds)
    return stop.synchronize();
  HEDDLE_ASSIGN(bool isOver, stop.waitFor(*limitSeconds));
  if (isOver)
    return {};
  device.abandon();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", *limitSeconds);
  return Status::unavailable(std::string("the launch did not end within ") + seconds + " s");
}

Result<double> LaunchTimer::time(const std::function<Status()> &launch) {
  HEDDLE_TRY(flush.fillBytes(0));
  HEDDLE_TRY(start.record());
  HEDDLE_TRY(launch());
  HEDDLE_TRY(stop.record());
  HEDDLE_TRY(wait());
  return stop.elapsedUsSince(start);
}

} // namespace heddle
