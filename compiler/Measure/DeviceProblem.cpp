#include "compiler/Measure/DeviceProblem.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"
#include "codegen/Target/FindArch.h"
#include "dialect/IR/PatternOperands.h"
#include "runtime/Core/CallArguments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle {

Result<const GpuArch *> archOf(const DeviceIdentity &device) {
  const std::string &name = device.arch;
  int capability = 0;
  for (char digit : name.substr(name.find('_') + 1))
    if (digit >= '0' && digit <= '9')
      capability = capability * 10 + (digit - '0');
  return findGpuArchFor(capability / 10, capability % 10);
}

oracle::KindCall definitionOf(const DeviceCall &call) {
  attn::ProblemSizes sizes = sizesOf(call.file, call.shape);
  const oracle::Problem problem{sizes.heads,   sizes.seqlenQ,    sizes.seqlenK,      sizes.qOrigin,
                                sizes.kOrigin, sizes.parameters, call.shape.operands};
  return {call.file.pattern(), problem, call.inputs, call.scale, call.outDType, true};
}

Result<RoleTensors> launchOnce(const Device &device, const DeviceCall &call, const KernelRecord &record) {
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, record));
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(device, call));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_TRY(kernel.launch(nullptr, args));
  RoleTensors results;
  HEDDLE_TRY(problem.download(results));
  return results;
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
  const std::optional<unsigned> queries = pattern.getWholeArgument(attn::WholeAxis::Queries),
                                keys = pattern.getWholeArgument(attn::WholeAxis::Keys);
  const bool hasParts = kind.hasPartsOfSequences() && queries && keys; // which say where the whole ends
  for (unsigned i = 0; i < shape.parameters.size(); ++i) {
    if (hasParts && (i == *queries || i == *keys))
      continue;
    const bool isTensor = i < pattern.getNumArguments() && pattern.isOperand(i);
    if (!isTensor || attn::lengthDimension(pattern, i))
      operands.push_back(sizeOperand(i, shape.parameters[i]));
    if (!isTensor)
      continue;
    const OperandTensor &tensor = shape.operands.at(i);
    HEDDLE_ASSIGN(void *address,
                  copyInput(pattern.getParameterName(i).str(), tensor.data->data(), tensor.data->size()));
    operands.push_back(pointerOperand(i, address));
  }
  return {};
}

Status DeviceProblem::bindGradients(const DeviceCall &call) {
  attn::PatternOp pattern = call.file.pattern();
  for (int64_t number : call.inputs.kind.gradientsOf) {
    const unsigned argument = unsigned(number);
    const std::vector<int64_t> shape = gradientShape(call.shape, argument);
    const int64_t bytes = int64_t(HostTensor::zeros(kAccumulator, shape).data.size());
    HEDDLE_ASSIGN(GuardedBuffer buffer,
                  GuardedBuffer::allocate(device, "d_" + pattern.getParameterName(argument).str(), bytes));
    gradients.push_back({int32_t(argument), 0, static_cast<float *>(buffer.data())});
    ofArguments.push_back({shape, std::move(buffer)});
  }
  return {};
}

Result<std::vector<HostTensor>> DeviceProblem::argumentGradients() const {
  HEDDLE_TRY(device.synchronize());
  std::vector<HostTensor> tensors;
  for (size_t place = 0; place < ofArguments.size(); ++place)
    HEDDLE_TRY(readGradient(place, tensors.emplace_back(HostTensor::zeros(kAccumulator, ofArguments[place].shape))));
  return tensors;
}

Status DeviceProblem::readGradient(size_t place, HostTensor &tensor) const {
  return ofArguments[place].buffer.copyTo(tensor.data.data(), tensor.data.size());
}

RoleTensors DeviceProblem::emptyResults() const { return emptyResultsOf(roles, sizes, elements); }

/// Key-major values with rows at multiples of 16 bytes, as launches want them; what lies between these is NaN.
static HostTensor withAlignedRows(const HostTensor &values) {
  const int64_t step = 16 / dtypeBytes(values.dtype), keys = values.shape[3];
  std::vector<int64_t> shape = values.shape;
  shape[3] = (keys + step - 1) / step * step;
  HostTensor aligned = HostTensor::zeros(values.dtype, shape);
  std::fill(aligned.data.begin(), aligned.data.end(), std::byte(0xff));
  const int64_t rowBytes = keys * dtypeBytes(values.dtype), alignedBytes = shape[3] * dtypeBytes(values.dtype);
  for (int64_t row = 0, rows = shape[0] * shape[1] * shape[2]; row < rows; ++row)
    std::copy_n(values.data.begin() + row * rowBytes, rowBytes, aligned.data.begin() + row * alignedBytes);
  return aligned;
}

Status DeviceProblem::bindRoles(const AttentionInputs &tensors) {
  for (const RoleSpec &role : tensors.given()) {
    if (includes(kind.find(role.role)->access, Access::write))
      continue;
    const HostTensor aligned = isKeyMajor(role) ? withAlignedRows(tensors.of(role.role)) : HostTensor();
    const HostTensor &tensor = isKeyMajor(role) ? aligned : tensors.of(role.role);
    HEDDLE_ASSIGN(void *address, copyInput(role.name, tensor.data.data(), tensor.data.size()));
    bindRole(args, role.role, address, tensor.dtype, tensor.shape);
    if (isKeyMajor(role))
      args.v.size[3] = tensors.v.shape[3];
  }
  const RoleTensors shapes = emptyResults();
  for (const RoleSpec &role : roles) {
    const HostTensor &tensor = shapes.of(role.role);
    HEDDLE_ASSIGN(GuardedBuffer buffer, GuardedBuffer::allocate(device, role.name, tensor.data.size()));
    bindRole(args, role.role, buffer.data(), tensor.dtype, tensor.shape);
    if (kind.find(role.role)->access == Access::both)
      addedTo.push_back({results.size(), tensors.of(role.role)});
    results.push_back(std::move(buffer));
  }
  return giveAddedTo();
}

Status DeviceProblem::giveAddedTo() {
  for (const auto &[number, tensor] : addedTo)
    HEDDLE_TRY(results[number].copyFrom(tensor.data.data(), tensor.data.size()));
  return {};
}

const GuardedBuffer &DeviceProblem::written(Role role) const {
  return *std::find_if(results.begin(), results.end(),
                       [&](const GuardedBuffer &buffer) { return buffer.name() == specOf(role).name; });
}

Result<DeviceProblem> DeviceProblem::create(const Device &device, const DeviceCall &call) {
  const AttentionInputs &inputs = call.inputs;
  DeviceProblem problem(device);
  problem.sizes = inputs.sizes;
  problem.kind = inputs.kind;
  problem.roles = inputs.written();
  problem.elements = inputs.elements(call.outDType);
  AttentionArgs &args = problem.args = makeAttentionArgs();
  HEDDLE_TRY(problem.bindRoles(inputs));
  args.scale = call.scale;
  if (!inputs.kind.walksPattern())
    return problem;
  HEDDLE_TRY(problem.bindArguments(call.file, call.shape));
  HEDDLE_TRY(problem.bindGradients(call));
  if (inputs.kind.hasPages()) { // sequences have positions of their own
    giveSizes(inputs.kind, [&inputs](RoleExtent size) { return inputs.sizes.of(size); }, args);
    return problem;
  }
  const attn::ProblemSizes positions = sizesOf(call.file, call.shape);
  args.q_origin = positions.qOrigin;
  args.k_origin = positions.kOrigin;
  return problem;
}

Result<AttentionArgs> DeviceProblem::argumentsFor(const Kernel &kernel) {
  args.operands = operands.data();
  args.operand_count = operands.size();
  args.gradients = gradients.empty() ? nullptr : gradients.data();
  args.gradient_count = gradients.size();
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
  for (GuardedBuffer &buffer : results)
    HEDDLE_TRY(buffer.poison());
  for (ArgumentGradient &gradient : ofArguments)
    HEDDLE_TRY(gradient.buffer.poison());
  return giveAddedTo();
}

Status DeviceProblem::checkGuards() const {
  for (const GuardedBuffer &buffer : results)
    HEDDLE_TRY(buffer.checkGuards());
  for (const ArgumentGradient &gradient : ofArguments)
    HEDDLE_TRY(gradient.buffer.checkGuards());
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

Result<std::vector<double>> DeviceProblem::readRow(const RoleSpec &role, const oracle::RowId &id) const {
  const oracle::RowSpan span = oracle::spanOf(role, sizes.shapeOf(role), id);
  HostTensor values = HostTensor::zeros(elements.of(role.element), {span.count});
  const int64_t bytes = int64_t(values.data.size());
  HEDDLE_TRY(written(role.role).copyTo(values.data.data(), bytes, span.first / span.count * bytes));
  std::vector<double> row;
  for (float value : values.toFloats())
    row.push_back(value);
  return row;
}

Result<oracle::KindReport> DeviceProblem::compare(const oracle::KindReference &reference) const {
  HEDDLE_TRY(device.synchronize());
  HEDDLE_TRY(checkGuards());
  Status failure;
  RoleTensors whole; // of roles whose rows lie across memory, copied once
  auto readAcross = [&](const RoleSpec &role, const oracle::RowId &id) -> Result<std::vector<double>> {
    HostTensor &tensor = whole.of(role.role);
    if (tensor.shape.empty()) {
      tensor = HostTensor::zeros(elements.of(role.element), sizes.shapeOf(role));
      HEDDLE_TRY(written(role.role).copyTo(tensor.data.data(), int64_t(tensor.data.size())));
    }
    const oracle::RowSpan span = oracle::spanOf(role, tensor.shape, id);
    std::vector<double> row;
    for (int64_t i = 0; i < span.count; ++i)
      row.push_back(tensor.get(span.first + i * span.step));
    return row;
  };
  auto rows = [&](Role role, const oracle::RowId &id) {
    const RoleSpec spec = specOf(*kind.find(role));
    Result<std::vector<double>> row = isKeyMajor(spec) ? readAcross(spec, id) : readRow(spec, id);
    if (row)
      return row.take();
    failure = row.status();
    return std::vector<double>(oracle::spanOf(spec, sizes.shapeOf(spec), id).count, std::nan(""));
  };
  auto argument = [&](size_t place) {
    HostTensor tensor = HostTensor::zeros(kAccumulator, ofArguments[place].shape);
    if (const Status read = readGradient(place, tensor); !read.isOk())
      failure = read;
    return tensor;
  };
  oracle::KindReport report = reference.compare({rows, argument});
  HEDDLE_TRY(failure);
  return report;
}

Status DeviceProblem::download(RoleTensors &host) const {
  HEDDLE_TRY(device.synchronize());
  host = emptyResults();
  for (const RoleSpec &role : roles) {
    HostTensor &tensor = host.of(role.role);
    HEDDLE_TRY(written(role.role).copyTo(tensor.data.data(), tensor.data.size()));
  }
  return {};
}

static int64_t countNaNOf(const HostTensor &tensor) {
  int64_t count = 0;
  for (int64_t i = 0, end = tensor.elements(); i < end; ++i)
    count += std::isnan(tensor.get(i));
  return count;
}

Result<int64_t> DeviceProblem::countNaN() const {
  RoleTensors host;
  HEDDLE_TRY(download(host));
  HEDDLE_ASSIGN(const std::vector<HostTensor> ofArguments, argumentGradients());
  int64_t count = 0;
  for (const RoleSpec &role : roles)
    count += countNaNOf(host.of(role.role));
  for (const HostTensor &gradient : ofArguments)
    count += countNaNOf(gradient);
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

constexpr int64_t kPieceBytes = int64_t(32) << 20;

static uint64_t digestOf(const void *data, int64_t bytes) {
  return llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), size_t(bytes)));
}

Fingerprint::Fingerprint(std::string name, const void *host, int64_t bytes) : name(std::move(name)), bytes(bytes) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes)
    pieces.push_back(digestOf(static_cast<const std::byte *>(host) + at, std::min(kPieceBytes, bytes - at)));
}

Status Fingerprint::check(const DeviceBuffer &copy) const {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t at = int64_t(i) * kPieceBytes, count = std::min(kPieceBytes, bytes - at);
    HEDDLE_TRY(copy.copyTo(piece.data(), count, at));
    if (digestOf(piece.data(), count) != pieces[i])
      return Status::internal("a kernel wrote into '" + name + "', which it may only read");
  }
  return Status();
}

} // namespace heddle
