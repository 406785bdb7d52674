//===- bench.cpp - heddle bench -------------------------------------------===//
// Measures the stored kernels of patterns beside the bf16 matrix product of the same run, verifies what they computed,
// and prints one row per workload.
//===----------------------------------------------------------------------===//
#include "compiler/Measure/MatrixRoof.h"
#include "compiler/Session/TuneSession.h"
#include "compiler/Tools/BenchRow.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <thread>

namespace heddle::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> files;
  std::vector<int64_t> seqlens, headDims = {128};
  int64_t valueDim = 0;
  ProblemOptions problem;
  ConfigOptions config;
  DatabaseOptions database;
  Kind kind = {};
  std::string dtype = dtypeName(kDefaultDType), tuneBudget;
  Precision precision = Precision::exact;
  GradientsOption gradientsOf;
  int64_t rows = 32, repetitions = 20;
  bool json = false;
};

/// Tuned now if asked for; the store is closed again before another process reads it.
Status tuneFirst(const BenchOptions &options, const PatternFile &file, const Workload &workload, const Device &device) {
  if (options.tuneBudget.empty())
    return {};
  HEDDLE_ASSIGN(double budget, parseSeconds(options.tuneBudget));
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_ASSIGN(std::vector<Store> shipped, options.database.openShippedStores());
  TuneRequest request;
  static_cast<CallShape &>(request) = workload;
  for (const Store &other : shipped)
    request.shipped.push_back(&other);
  request.shape = workload.shape;
  request.skeleton = options.config.skeleton;
  request.measureProgram = thisProgram();
  request.options.budgetSeconds = budget;
  request.options.workers = std::max(1u, std::thread::hardware_concurrency() - 1);
  request.options.ahead = 2 * request.options.workers;
  ProgressLine progress;
  request.options.progress = [&](const tuner::Progress &now) { progress.show(now); };
  Result<TuneOutcome> outcome = tune(file, request, device, store);
  progress.finish();
  if (outcome && !outcome->record)
    return Status::unsupported("no configuration gave a correct, measured kernel within the budget");
  return outcome.status();
}

class Bench {
public:
  Bench(const BenchOptions &options, const Device &device) : options(options), device(device) {
    Result<MatrixRoof> product = MatrixRoof::create(device);
    if (product)
      roof.emplace(product.take());
    else
      note("no roof: " + product.status().message());
  }

  int run() {
    for (const std::string &path : options.files) {
      const auto file = PatternOptions{path, ""}.load();
      if (!file)
        return failNames(file.status());
      if (Status names = options.problem.sizes.check(**file); !names.isOk())
        return failUsage(names);
      if (Status status = runFile(**file); !status.isOk())
        return fail(status);
    }
    if (options.json)
      printJson(rowsJson(rows, device.info().identity.deviceName));
    bool allRight = std::all_of(rows.begin(), rows.end(), [](const BenchRow &row) { return row.isRight(); });
    return allRight ? Ok
                    : fail(Status::invalidArgument("a result differs from the definition by more than is allowed"));
  }

private:
  Status runFile(const PatternFile &file) {
    CallShape call;
    const DType dtype = *parseDType(options.dtype);
    call.elements = CallElements(dtype, CallElements::outOf(dtype), options.precision);
    HEDDLE_ASSIGN(call.kind, options.gradientsOf.addedTo(options.kind, file));
    for (int64_t headDim : options.headDims)
      for (int64_t seqlen : options.seqlens) {
        ProblemOptions problem = options.problem;
        problem.seqlen = seqlen;
        HEDDLE_ASSIGN(ProblemShape shape, problem.shape(file));
        call.headDim = headDim;
        call.valueDim = options.valueDim ? options.valueDim : headDim;
        HEDDLE_TRY(runWorkload(file, Workload{call, shape}));
      }
    return {};
  }

  Status runWorkload(const PatternFile &file, const Workload &workload) {
    HEDDLE_TRY(tuneFirst(options, file, workload, device));
    BenchSetup setup{file,
                     workload,
                     device,
                     options.database,
                     options.tuneBudget.empty() ? options.config.changes() : "",
                     options.config.skeleton,
                     options.rows,
                     options.repetitions};
    HEDDLE_ASSIGN(BenchRow row, measure(setup, roof ? &*roof : nullptr));
    if (!options.json)
      printRow(row, rows.empty());
    rows.push_back(row);
    return {};
  }

  const BenchOptions &options;
  Device device;
  std::optional<MatrixRoof> roof;
  std::vector<BenchRow> rows;
};

} // namespace

Action addBench(CLI::App &command) {
  auto options = std::make_shared<BenchOptions>();
  addValue(command, "FILE", options->files, kPatternType,
           "patterns: files (.mlir) or names of the library ('heddle help patterns')")
      ->required();
  addKindOption(command, options->kind, /*withPages=*/false);
  options->gradientsOf.add(command);
  takesCount(command.add_option("--seqlen", options->seqlens, "lengths, separated by commas"))
      ->required()
      ->delimiter(',');
  takesCount(command.add_option("--head-dim", options->headDims, "head dims, separated by commas"))
      ->delimiter(',')
      ->capture_default_str();
  takesCount(
      command.add_option("--value-dim", options->valueDim, "elements of one head of v and out; default: the head dim"));
  command.add_option("--dtype", options->dtype, "element type of q, k, v and out")
      ->capture_default_str()
      ->check(CLI::IsMember(elementNames(&ElementTraits::isComputed)));
  addPrecisionOption(command, options->precision);
  options->problem.add(command, /*withSeqlen=*/false);
  options->database.add(command);
  options->database.addShipped(command);
  auto *tune = command.add_option("--tune", options->tuneBudget, "tune each workload for this long first: 10, 10s, 1m");
  options->config.addSkeleton(command);
  options->config.addFields(command)->excludes(tune);
  takesCount(command.add_option("--rows", options->rows, "rows compared with the definition"))->capture_default_str();
  takesCount(command.add_option("--reps", options->repetitions, "timed launches; the median counts"))
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  addJsonOption(command, options->json);
  return [options] {
    if (!options->tuneBudget.empty())
      if (Result<double> budget = parseSeconds(options->tuneBudget); !budget)
        return failUsage(budget.status());
    Result<Device> device = Device::open();
    return device ? Bench(*options, *device).run() : fail(device.status());
  };
}

} // namespace heddle::cli
