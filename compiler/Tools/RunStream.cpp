#include "compiler/Tools/RunStream.h"
#include "codegen/Target/GpuArch.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Io/Memory.h"
#include "compiler/Library/CompiledPattern.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Session/ChooseKernel.h"
#include "compiler/Stream/CheckedRows.h"
#include "compiler/Stream/DeviceMachine.h"
#include "compiler/Stream/HostMachine.h"
#include "compiler/Stream/PiecesFile.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Tools/Verb.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/RealWord.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/ReadFile.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

namespace heddle::cli {
namespace {

/// What of the memory that there is the pieces of a call may take, unless --piece-rows says how many rows they have.
constexpr double kShareOfMemory = 0.5;
/// So that there is progress to show, and a failure costs little.
constexpr int64_t kMostRowsOfPiece = int64_t(1) << 24;

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The most that this process has held so far.
int64_t peakMemory() {
  const Result<std::string> status = readTextFile("/proc/self/status", {"file of the system"});
  const size_t at = status ? status->find("VmHWM:") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtoll(status->c_str() + at + 6, nullptr, 10) * 1024;
}

Result<std::unique_ptr<RowSource>> sourceOf(const StreamedRun &run) {
  if (!run.stream.seqlen)
    return FileRows::open(run.inputs);
  AttentionSizes sizes = run.stream.sizes;
  sizes.seqlenQ = sizes.seqlenK = *run.stream.seqlen;
  sizes.kvHeads = run.stream.kvHeads ? run.stream.kvHeads : sizes.heads;
  sizes.valueDim = run.stream.valueDim ? run.stream.valueDim : sizes.headDim;
  HEDDLE_ASSIGN(std::unique_ptr<RandomRows> rows,
                RandomRows::create(sizes, *parseDType(run.stream.dtype), run.stream.seed));
  return std::unique_ptr<RowSource>(std::move(rows));
}

Result<ProblemShape> shapeOfWhole(const StreamedRun &run, const RowSource &source) {
  ProblemShape shape = shapeOf(source.sizes);
  HEDDLE_ASSIGN(shape.parameters, run.file.bindParameters(run.sizes.assignments));
  HEDDLE_TRY(checkShape(run.file, shape));
  using Missing = OperandSources::Missing;
  const Missing missing = run.makesOperands ? Missing::make : Missing::refuse;
  HEDDLE_TRY(bindOperands(run.file, {run.sizes.operands, run.inputs, missing}, shape));
  return shape;
}

heddle_operand operandOf(unsigned argument, int32_t kind) {
  heddle_operand operand = {};
  operand.id = int32_t(argument);
  operand.kind = kind;
  return operand;
}

/// What calls give the arguments of the pattern, tensors in memory of the machine.
Result<std::vector<heddle_operand>> operandsOf(const PatternFile &file, const ProblemShape &shape,
                                               StreamMachine &machine) {
  attn::PatternOp pattern = file.pattern();
  std::vector<heddle_operand> operands;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
    const int64_t word = shape.parameters[i];
    if (!pattern.isOperand(i) && pattern.isRealParameter(i)) {
      operands.push_back(operandOf(i, HEDDLE_OPERAND_FLOAT));
      operands.back().value.f64 = attn::realOfWord(word);
      continue;
    }
    if (!pattern.isOperand(i) || attn::lengthDimension(pattern, i)) {
      operands.push_back(operandOf(i, HEDDLE_OPERAND_INT));
      operands.back().value.i64 = word;
    }
    if (!pattern.isOperand(i))
      continue;
    const std::vector<std::byte> &data = *shape.operands.at(i).data;
    HEDDLE_ASSIGN(char *place, machine.allocate(data.size()));
    HEDDLE_TRY(machine.put(data.data(), data.size(), place));
    operands.push_back(operandOf(i, HEDDLE_OPERAND_POINTER));
    operands.back().value.ptr = place;
  }
  return operands;
}

/// A streamed call with all that it refers to.
class StreamedCall {
public:
  explicit StreamedCall(const StreamedRun &run) : run(run) {}

  Status compute() {
    HEDDLE_TRY(prepare());
    tellForecast();
    std::vector<StreamSink *> sinks;
    if (file)
      sinks.push_back(file.get());
    if (checked)
      sinks.push_back(checked.get());
    const auto start = std::chrono::steady_clock::now();
    ProgressLine progress;
    const Status status = call->run(sinks, [&](double share) {
      const double seconds = secondsSince(start);
      progress.show(share, std::to_string(int64_t(seconds)) + " s, about " +
                               std::to_string(int64_t(seconds / share - seconds)) + " s left");
    });
    progress.finish();
    HEDDLE_TRY(status);
    seconds = secondsSince(start);
    if (device) { // nothing was given back yet
      HEDDLE_ASSIGN(freeAtEnd, device->freeBytes());
    }
    if (file)
      HEDDLE_TRY(file->publish());
    if (checked) {
      HEDDLE_ASSIGN(report, checked->compare());
    }
    return {};
  }

  void print() const {
    if (run.json)
      printJson(json());
    else
      printText();
  }

  bool isRight() const { return !report || report->rows.isOk(); }

private:
  Status prepare() {
    HEDDLE_TRY(StreamCall::checkTensors(run.file.pattern()));
    HEDDLE_ASSIGN(source, sourceOf(run));
    HEDDLE_ASSIGN(shape, shapeOfWhole(run, *source));
    if (run.stream.firstRow >= shape.seqlenQ)
      return Status::invalidArgument("--first-row: expected 0 to " + std::to_string(shape.seqlenQ - 1) + ", got " +
                                     std::to_string(run.stream.firstRow));
    HEDDLE_ASSIGN(const std::shared_ptr<CompiledPattern> whole,
                  CompiledPattern::create(run.file.text(), run.file.path(), {}));
    HEDDLE_ASSIGN(part, whole->part());
    HEDDLE_TRY(makeMachine());
    scale = float(run.scale.value_or(1 / std::sqrt(double(source->sizes.headDim))));
    sizes = sizesOf(run.file, shape);
    problem = {shape.heads,   shape.seqlenQ,    shape.seqlenK, sizes.qOrigin,
               sizes.kOrigin, shape.parameters, shape.operands};
    StreamRequest request{run.file, sizes, part->info().digest, part->wholes(), scale};
    HEDDLE_ASSIGN(request.operands, operandsOf(run.file, shape, *machine));
    request.pieceRows = rowsOfPiece();
    request.firstRow = run.stream.firstRow;
    HEDDLE_ASSIGN(StreamCall made, StreamCall::create(std::move(request), *machine));
    call = std::make_unique<StreamCall>(std::move(made));
    if (!run.output.empty()) {
      HEDDLE_ASSIGN(file, PiecesFile::create(run.output, *source, run.stream.firstRow));
    }
    if (run.checkedRows)
      checked =
          std::make_unique<CheckedRows>(run.file, sizes, problem, *source, scale, run.stream.firstRow, run.checkedRows);
    return {};
  }

  void tellForecast() const {
    const StreamForecast &figures = call->forecast();
    if (!isQuiet())
      std::cerr << "heddle: " << counted(figures.pieces, "piece") << ", " << memoryText(double(figures.readBytes))
                << " to read, " << memoryText(double(figures.memoryBytes + figures.workspaceBytes)) << " of memory\n";
  }

  Status makeMachine() {
    if (run.target == "cuda")
      return makeDeviceMachine();
    memory = availableMemory();
    kernel = "compiled for this machine's CPU";
    machine = std::make_unique<HostMachine>(part, *source);
    return {};
  }

  Status makeDeviceMachine() {
    if (run.scale && *run.scale == 0)
      return Status::unsupported("scale 0 is served by --target=cpu only");
    HEDDLE_ASSIGN(device, openDevice());
    HEDDLE_ASSIGN(memory, device->freeBytes());
    freeBefore = memory;
    HEDDLE_ASSIGN(const GpuArch *arch, archOf(*device));
    HEDDLE_TRY(planTime(*arch));
    HEDDLE_ASSIGN(std::vector<Kernel> kernels, kernelsOfParts(*arch));
    HEDDLE_ASSIGN(std::unique_ptr<DeviceMachine> made,
                  DeviceMachine::create(*device, archName(*arch), std::move(kernels), *source));
    staging = &made->staging();
    machine = std::move(made);
    return {};
  }

  /// Kept pairs take it, at the rate that plans over ranks assume, and numbers that are made; nothing where there is no such count.
  Status planTime(const GpuArch &arch) {
    constexpr double kEfficiency = 0.65;
    constexpr double kNumbersOfClock = 2.0 / 3; ///< of a processor: an H200 makes 5.2e10 in 0.32 s
    if (run.stream.firstRow)
      return {};
    const AttentionSizes &of = source->sizes;
    HEDDLE_ASSIGN(const GpuModel *gpu, findGpuModel(arch.referenceGpu));
    HEDDLE_ASSIGN(const std::optional<double> flops,
                  keptFlops(run.file, shape, Kind().flopsOfPair(of.headDim, of.valueDim)));
    if (!flops)
      return {};
    plannedSeconds = *flops / (kEfficiency * gpu->matrixTflops(source->dtype) * 1e12);
    const double numbers =
        double(of.batch * of.seqlenQ) * double(of.heads * of.headDim + of.kvHeads * (of.headDim + of.valueDim));
    if (run.stream.seqlen)
      *plannedSeconds += numbers / (kNumbersOfClock * gpu->smCount * gpu->clockMhz * 1e6);
    return {};
  }

  static Result<std::optional<Device>> openDevice() {
    HEDDLE_ASSIGN(Device device, Device::open());
    return std::optional<Device>(std::move(device));
  }

  /// The last launch of a piece writes out as it is wanted, those before it fp32, which the next one continues.
  Result<std::vector<Kernel>> kernelsOfParts(const GpuArch &arch) {
    StoreStack stores;
    if (run.config.empty() || !run.database.given.empty()) {
      HEDDLE_ASSIGN(stores, run.database.openForLookup());
    }
    HEDDLE_ASSIGN(const std::unique_ptr<PatternFile> ofParts, part->copyForThread());
    ProblemShape piece = shape;
    piece.seqlenQ = piece.seqlenK = std::min(rowsOfPiece(), shape.seqlenQ);
    piece.parameters.resize(size_t(part->info().argument_count));
    piece.operands.resize(piece.operands.empty() ? 0 : piece.parameters.size());
    for (int64_t argument : part->wholes())
      piece.parameters[size_t(argument)] = shape.seqlenQ;
    std::vector<Kernel> kernels;
    for (bool outFloat32 : {false, true}) {
      KernelShape wanted;
      wanted.arch = &arch;
      wanted.elements = CallElements(source->dtype, outFloat32 ? kAccumulator : CallElements::outOf(source->dtype));
      wanted.headDim = source->sizes.headDim;
      wanted.valueDim = source->sizes.valueDim;
      wanted.queryRows = piece.seqlenQ;
      HEDDLE_ASSIGN(ChosenKernel chosen,
                    chooseKernel({*ofParts, piece, wanted, run.config, /*cutsBlocks=*/true}, stores, *device));
      if (!isQuiet())
        std::cerr << "heddle: kernel " << (outFloat32 ? "that others continue: " : "") << chosen.origin << '\n';
      if (!outFloat32)
        kernel = chosen.origin + ", " + device->info().identity.deviceName;
      HEDDLE_ASSIGN(Kernel loaded, Kernel::load(*device, chosen.record));
      kernels.push_back(std::move(loaded));
    }
    return kernels;
  }

  int64_t rowsOfPiece() const {
    if (run.stream.pieceRows)
      return run.stream.pieceRows;
    const int64_t fitting = int64_t(double(memory) * kShareOfMemory) / StreamCall::bytesOfRow(*source);
    constexpr int64_t kTiles = 256;
    return std::clamp<int64_t>(fitting / kTiles * kTiles, kTiles, kMostRowsOfPiece);
  }

  Json json() const {
    const AttentionSizes &of = source->sizes;
    const StreamForecast &figures = call->forecast();
    Json json = {{"pattern", run.file.pattern().getSymName().str()},
                 {"target", run.target},
                 {"kernel", kernel},
                 {"inputs", source->name()},
                 {"output", run.output},
                 {"dtype", dtypeName(source->dtype)},
                 {"batch", of.batch},
                 {"heads", of.heads},
                 {"kv_heads", of.kvHeads},
                 {"seqlen", of.seqlenQ},
                 {"first_row", run.stream.firstRow},
                 {"head_dim", of.headDim},
                 {"value_dim", of.valueDim},
                 {"scale", scale},
                 {"pieces", figures.pieces},
                 {"launches", figures.launches},
                 {"most_window_rows", figures.mostWindowRows},
                 {"written_bytes", figures.writtenBytes}};
    json["planned"] = {{"ms", plannedSeconds ? Json(*plannedSeconds * 1000) : Json()},
                       {"read_bytes", figures.readBytes},
                       {"memory_bytes", figures.memoryBytes + figures.workspaceBytes}};
    json["measured"] = {{"ms", seconds * 1000},
                        {"read_bytes", machine->givenBytes()},
                        {"peak_memory_bytes", peak()},
                        {"staging", stagingJson()}};
    json["verify"] = Json();
    if (report) {
      json["verify"] = verifyJson(report->rows);
      json["verify"]["skipped_rows"] = report->skippedRows;
      json["verify"]["other_keys"] = report->otherKeys;
    }
    return json;
  }

  /// What went through memory of the host on its way to and from the GPU.
  Json stagingJson() const {
    const PinnedMemory *memory = staging ? staging->memory() : nullptr;
    if (!memory)
      return {};
    return {{"bytes", staging->bytes()},
            {"pinned", memory->isPinned()},
            {"numa_node", memory->node() < 0 ? Json() : Json(memory->node())},
            {"note", memory->note().empty() ? Json() : Json(memory->note())}};
  }

  void printStaging() const {
    const PinnedMemory *memory = staging ? staging->memory() : nullptr;
    if (!memory)
      return;
    printTo(std::cout, "  copies through %s of the host's memory%s%s%s\n", memoryText(double(staging->bytes())).c_str(),
            memory->isPinned() ? ", pinned" : "",
            memory->node() < 0 ? "" : (", on NUMA node " + std::to_string(memory->node())).c_str(),
            memory->note().empty() ? "" : ("; " + memory->note()).c_str());
  }

  void printText() const {
    const StreamForecast &figures = call->forecast();
    const AttentionSizes &of = source->sizes;
    printTo(std::cout, "%s: %s of %s, %s, %.3f s on %s (%s)\n", run.file.pattern().getSymName().str().c_str(),
            counted(of.seqlenQ - run.stream.firstRow, "row").c_str(), source->name().c_str(),
            run.output.empty() ? "nothing written" : ("out and lse in " + run.output).c_str(), seconds,
            run.target.c_str(), kernel.c_str());
    printTo(std::cout, "%s, %s, windows of up to %s rows\n", counted(figures.pieces, "piece").c_str(),
            counted(figures.launches, "launch").c_str(), grouped(figures.mostWindowRows).c_str());
    printTo(std::cout, "  %-14s %12s %12s\n", "", "planned", "measured");
    printTo(std::cout, "  %-14s %12s %12s\n", "read", memoryText(double(figures.readBytes)).c_str(),
            memoryText(double(machine->givenBytes())).c_str());
    printTo(std::cout, "  %-14s %12s %12s\n", "memory",
            memoryText(double(figures.memoryBytes + figures.workspaceBytes)).c_str(),
            memoryText(double(peak())).c_str());
    if (plannedSeconds)
      printTo(std::cout, "  %-14s %10.3f s %10.3f s\n", "time", *plannedSeconds, seconds);
    printStaging();
    if (!report)
      return;
    printVerify(report->rows);
    if (report->skippedRows)
      printTo(std::cout, "  %s left out, which may keep more than %s keys each\n",
              counted(report->skippedRows, "row").c_str(), grouped(CheckedRows::kMostKeysOfRow).c_str());
    printTo(std::cout, "  the definition keeps none of %s that the plan leaves out\n",
            counted(report->otherKeys, "other key").c_str());
  }

  int64_t peak() const { return device ? freeBefore - freeAtEnd : peakMemory(); }

  const StreamedRun &run;
  std::optional<Device> device; ///< of target cuda
  int64_t freeBefore = 0, freeAtEnd = 0;
  const HostStaging *staging = nullptr; ///< of the machine
  std::optional<double> plannedSeconds;
  std::unique_ptr<RowSource> source;
  ProblemShape shape;
  std::shared_ptr<CompiledPattern> part;
  std::unique_ptr<StreamMachine> machine;
  int64_t memory = 0;
  std::string kernel;
  float scale = 0;
  attn::ProblemSizes sizes;
  oracle::Problem problem;
  std::unique_ptr<PiecesFile> file;
  std::unique_ptr<StreamCall> call;
  std::unique_ptr<CheckedRows> checked;
  double seconds = 0;
  std::optional<CheckedReport> report;
};

} // namespace

int runStreamed(const StreamedRun &run) {
  StreamedCall call(run);
  if (const Status status = call.compute(); !status.isOk())
    return fail(status);
  call.print();
  if (call.isRight())
    return Ok;
  return fail(Status::invalidArgument(
      "the result differs from the definition by more than is allowed" +
      (run.output.empty() ? std::string() : "; " + run.output + " was written and is not to be trusted")));
}

} // namespace heddle::cli
