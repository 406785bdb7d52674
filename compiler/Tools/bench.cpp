// Measures the stored kernels of patterns beside the bf16 matrix product of the same run, or, over keys in pages, beside a
// read of memory, verifies what they computed, and prints one row per workload.
#include "codegen/Target/GpuArch.h"
#include "compiler/Measure/MatrixRoof.h"
#include "compiler/Session/TuneSession.h"
#include "compiler/Tools/ProcessStats.h"
#include "compiler/Tools/BenchRow.h"
#include "compiler/Tools/DecodeRow.h"
#include "compiler/Tools/KeyLayout.h"
#include "compiler/Tools/Fp8Row.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <thread>

namespace heddle::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> files;
  std::vector<int64_t> seqlens, headDims = {128};
  int64_t valueDim = 0;
  ProblemOptions problem;
  PagesOptions pages;
  ConfigOptions config;
  DatabaseOptions database;
  Kind kind = {};
  std::string dtype = dtypeName(kDefaultDType), keyDtype, tuneBudget;
  Precision precision = Precision::exact;
  GradientsOption gradientsOf;
  int64_t rows = 32, repetitions = 20, scaleRows = 0;
  bool json = false, isFp8 = false, rotates = false, isKeyMajor = false;
};

/// Tuned now if asked for; the store is closed again before another process reads it.
Status tuneFirst(const BenchOptions &options, const PatternFile &file, const Workload &workload,
                 const ServedKeys &served, const Device &device) {
  if (options.tuneBudget.empty())
    return {};
  HEDDLE_ASSIGN(double budget, parseSeconds(options.tuneBudget));
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_ASSIGN(std::vector<Store> shipped, options.database.openShippedStores());
  TuneRequest request;
  static_cast<CallShape &>(request) = workload;
  for (const Store &other : shipped)
    request.shipped.push_back(&other);
  request.shape = workload.shape, request.served = served;
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
    const Status made =
        options.kind.hasPages() ? makeRoof(read, readOf(device)) : makeRoof(roof, MatrixRoof::create(device));
    if (!made.isOk())
      note("no roof: " + made.message());
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
    const std::string &name = device.info().identity.deviceName;
    if (options.json) {
      Json json = options.isFp8             ? rowsJson(fp8Rows, name)
                  : options.kind.hasPages() ? rowsJson(decodeRows, name)
                                            : rowsJson(rows, name);
      json["stats"] = processStats();
      printJson(std::move(json));
    }
    const auto areRight = [](const auto &all) {
      return std::all_of(all.begin(), all.end(), [](const auto &row) { return row.isRight(); });
    };
    return areRight(rows) && areRight(decodeRows) && areRight(fp8Rows)
               ? Ok
               : fail(Status::invalidArgument("a result differs from the definition by more than is allowed"));
  }

private:
  static Result<ReadRoof> readOf(const Device &device) {
    HEDDLE_ASSIGN(const GpuArch *arch, archOf(device));
    return ReadRoof::create(device, std::string(arch->name));
  }

  template <class Roof> static Status makeRoof(std::optional<Roof> &place, Result<Roof> made) {
    if (made)
      place.emplace(made.take());
    return made.status();
  }

  Status runFile(const PatternFile &file) {
    CallShape call;
    const DType dtype = *parseDType(options.dtype);
    call.elements = CallElements(dtype, CallElements::outOf(dtype), options.precision)
                        .withKeys(parseDType(options.keyDtype).value_or(dtype))
                        .withScaleRows(options.scaleRows);
    HEDDLE_ASSIGN(call.kind, options.gradientsOf.addedTo(options.kind, file));
    for (int64_t headDim : options.headDims)
      for (int64_t seqlen : options.seqlens) {
        call.headDim = headDim;
        call.valueDim = options.valueDim ? options.valueDim : headDim;
        ProblemOptions problem = options.problem;
        problem.seqlen = seqlen;
        if (options.kind.hasPages()) {
          HEDDLE_TRY(runLengths(file, call, problem));
          continue;
        }
        HEDDLE_ASSIGN(ProblemShape shape, problem.shape(file));
        HEDDLE_TRY(runWorkload(file, Workload{call, shape}));
      }
    return {};
  }

  Status runLengths(const PatternFile &file, const CallShape &call, ProblemOptions problem) {
    for (const ServedKeys &keys : options.pages.keys()) {
      problem.seqlenK = keys.room();
      HEDDLE_ASSIGN(const ProblemShape shape, problem.shape(file));
      const Workload workload{call, shape};
      HEDDLE_TRY(tuneFirst(options, file, workload, keys, device));
      HEDDLE_ASSIGN(DecodeRow row, measureDecode(setupOf(file, workload), keys, read ? &*read : nullptr));
      show(std::move(row), decodeRows);
    }
    return {};
  }

  Status runWorkload(const PatternFile &file, const Workload &workload) {
    HEDDLE_TRY(tuneFirst(options, file, workload, {}, device));
    if (options.isFp8) {
      HEDDLE_ASSIGN(Fp8Row row, measureFp8(setupOf(file, workload), options.rotates, roof ? &*roof : nullptr));
      show(std::move(row), fp8Rows);
      return {};
    }
    HEDDLE_ASSIGN(BenchRow row, measure(setupOf(file, workload), roof ? &*roof : nullptr));
    show(std::move(row), rows);
    return {};
  }

  BenchSetup setupOf(const PatternFile &file, const Workload &workload) const {
    return {file,
            workload,
            device,
            options.database,
            options.tuneBudget.empty() ? options.config.changes() : "",
            options.config.skeleton,
            options.rows,
            options.repetitions};
  }

  template <class Row> void show(Row row, std::vector<Row> &all) const {
    if (!options.json)
      printRow(row, all.empty());
    all.push_back(std::move(row));
  }

  const BenchOptions &options;
  Device device;
  std::optional<MatrixRoof> roof;
  std::optional<ReadRoof> read; ///< of calls over pages
  std::vector<BenchRow> rows;
  std::vector<DecodeRow> decodeRows;
  std::vector<Fp8Row> fp8Rows;
};

/// Forward calls, whose types say themselves what they are. Usage errors.
Status checkFp8(BenchOptions &options) {
  if (!options.isFp8)
    return {};
  const std::string e4m3 = dtypeName(DType::e4m3);
  const char *refused = options.kind != Kind()                                               ? "--kind"
                        : options.dtype != dtypeName(kDefaultDType) && options.dtype != e4m3 ? "--dtype"
                        : !options.keyDtype.empty()                                          ? "--kv-dtype"
                                                                                             : nullptr;
  if (refused)
    return Status::invalidArgument(std::string(refused) +
                                   ": --fp8 measures forward calls of e4m3 beside those of bf16");
  options.dtype = e4m3;
  options.kind.hasKeyMajorValues = options.isKeyMajor;
  return {};
}

/// What belongs to calls over pages, and what does not. Usage errors.
Status checkPages(BenchOptions &options) {
  HEDDLE_TRY(options.pages.check(options.kind, options.problem.seqlenK));
  if (!options.kind.hasPages())
    return options.seqlens.empty() ? Status::invalidArgument("--seqlen is required") : Status();
  if (options.seqlens.empty())
    options.seqlens = {1};
  return {};
}

} // namespace

Action addBench(CLI::App &command) {
  auto options = std::make_shared<BenchOptions>();
  addValue(command, "FILE", options->files, kPatternType,
           "patterns: files (.mlir) or names of the library ('heddle help patterns')")
      ->required();
  CLI::Option *kind = addKindOption(command, options->kind, /*withPages=*/true);
  command.add_flag_callback(
             "--decode", [options] { options->kind = {KindBase::decode}; }, "As --kind=decode")
      ->excludes(kind)
      ->excludes(command.get_option("--backward"));
  command
      .add_flag_callback(
          "--batch-invariant", [options] { options->kind = {KindBase::decodeInvariant}; },
          "with --decode, as --kind=decode_invariant: bits of a sequence do not depend on the others")
      ->needs(command.get_option("--decode"));
  options->gradientsOf.add(command);
  takesCount(command.add_option("--seqlen", options->seqlens,
                                "lengths, separated by commas; of --decode: queries of "
                                "each sequence, 1 unless it is given"))
      ->delimiter(',');
  takesCount(command.add_option("--head-dim", options->headDims, "head dims, separated by commas"))
      ->delimiter(',')
      ->capture_default_str();
  takesCount(
      command.add_option("--value-dim", options->valueDim, "elements of one head of v and out; default: the head dim"));
  command.add_option("--dtype", options->dtype, "element type of q, k, v and out")
      ->capture_default_str()
      ->check(CLI::IsMember(elementNames(&ElementTraits::isComputed)));
  command
      .add_option("--kv-dtype", options->keyDtype, "element type of k and v, if it is e4m3 beside q of bf16 or fp16")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isScaled)));
  CLI::Option *fp8 =
      command.add_flag("--fp8", options->isFp8,
                       "forward calls of e4m3, alone and behind the kernel that quantises, beside those of bf16");
  command.add_flag("--rotate", options->rotates, "with --fp8: the kernel that quantises rotates q and k first")
      ->needs(fp8);
  addScaleRowsOption(command, options->scaleRows, "with --fp8: how many rows of q and k share a scale")->needs(fp8);
  addKeyMajorOption(command, options->isKeyMajor, "with --fp8: v in e4m3 lies")->needs(fp8);
  addPrecisionOption(command, options->precision);
  options->problem.add(command, /*withSeqlen=*/false);
  options->pages.add(command, /*several=*/true);
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
    for (Status (*check)(BenchOptions &) : {checkFp8, checkPages})
      if (const Status fits = check(*options); !fits.isOk())
        return failUsage(fits);
    if (!options->tuneBudget.empty())
      if (Result<double> budget = parseSeconds(options->tuneBudget); !budget)
        return failUsage(budget.status());
    Result<Device> device = Device::open();
    return device ? Bench(*options, *device).run() : fail(device.status());
  };
}

} // namespace heddle::cli
