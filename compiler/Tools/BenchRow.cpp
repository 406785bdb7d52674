//===- BenchRow.cpp - one measured workload -------------------------------===//
#include "compiler/Tools/BenchRow.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Measure/LauncherProcess.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "runtime/Store/Store.h"

#include <iostream>
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle::cli {
namespace {

struct Found {
  KernelRecord record;
  std::string match; ///< in words
  std::string name;
};

Result<StoreStack> openStores(const BenchSetup &setup) {
  HEDDLE_ASSIGN(StoreStack stores, setup.database.openForLookup());
  if (stores.isEmpty()) {
    HEDDLE_ASSIGN(Store own, setup.database.open(StoreMode::readOnly));
    stores.add(std::move(own));
  }
  return stores;
}

Result<Found> findKernel(const BenchSetup &setup) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(setup.file));
  KernelShape shape;
  HEDDLE_ASSIGN(shape.arch, archOf(setup.device));
  shape.dtype = setup.workload.dtype;
  shape.headDim = setup.workload.headDim;
  shape.valueDim = setup.workload.valueDim;
  shape.queries = setup.workload.shape.seqlenQ;
  if (!setup.config.empty()) {
    HEDDLE_ASSIGN(CompiledVariant variant, compileVariant(prepared, shape, setup.config));
    return Found{std::move(variant.record), "compiled now", prepared.name};
  }
  HEDDLE_ASSIGN(StoreStack stores, openStores(setup));
  WinnerKey key = winnerKey(setup.file, setup.workload.shape, familyOf(prepared, shape), setup.device.info().identity);
  HEDDLE_ASSIGN(StackLookup found, stores.lookup(LookupQuery(key, setup.device.info().driverVersion)));
  if (found.match == MatchKind::none)
    return Status::notFound("no kernel for '" + prepared.name + "' " + dtypeName(shape.dtype) +
                            " d=" + std::to_string(shape.headDim) + " in " + stores.paths() +
                            ": tune it first, or give bench --tune=SECONDS or --config");
  return Found{std::move(found.record), matchKindName(found.match), prepared.name};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Launches kernel and matrix product in turn, so that both see the same clock.
Status timeInTurn(const BenchSetup &setup, const PreparedLaunch &launch, MatrixRoof *roof, BenchRow &row) {
  HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(setup.device));
  constexpr int kWarmups = 3;
  std::vector<double> kernelUs, roofUs;
  for (int64_t i = -kWarmups; i < setup.repetitions; ++i) {
    HEDDLE_ASSIGN(double us, timer.time([&] { return launch.launch(nullptr); }));
    double productUs = 0;
    if (roof) {
      HEDDLE_ASSIGN(productUs, timer.time([&] { return roof->launch(); }));
    }
    if (i < 0)
      continue;
    kernelUs.push_back(us);
    roofUs.push_back(productUs);
  }
  row.us = median(kernelUs);
  row.roofUs = median(roofUs);
  return {};
}

/// Compares what another process computed with the reference rows.
oracle::VerifyReport compareTensors(const HostTensor &out, const HostTensor &lse,
                                    const oracle::ReferenceRows &reference, const Workload &workload) {
  const ProblemShape &shape = workload.shape;
  return oracle::compareRows(reference, [&](const oracle::RowId &id) {
    oracle::RowResult row;
    int64_t first = ((id.batch * shape.seqlenQ + id.row) * shape.heads + id.head) * workload.valueDim;
    for (int64_t c = 0; c < workload.valueDim; ++c)
      row.out.push_back(out.get(first + c));
    row.lse = lse.get((id.batch * shape.heads + id.head) * shape.seqlenQ + id.row);
    return row;
  });
}

/// The same call in the second process, checked here.
Status measureElsewhere(const BenchSetup &setup, const Found &found, uint64_t seed, BenchRow &row,
                        const oracle::ReferenceRows &reference) {
  const Workload &workload = setup.workload;
  const LauncherCall call{setup.launcher,   setup.database.path(), setup.database.shippedPaths(),
                          found.name,       &kinds().front(),      workload.dtype,
                          workload.headDim, workload.valueDim,     seed,
                          setup.repetitions};
  HEDDLE_ASSIGN(LauncherAnswer answer, launchElsewhere(setup.file, workload.shape, call));
  row.launcherUs = answer.medianUs;
  row.match = answer.match;
  row.verified = compareTensors(answer.results.out, answer.results.lse, reference, workload);
  return {};
}

} // namespace

std::optional<double> BenchRow::tflops() const { return teraflops(flops, us); }

std::optional<double> BenchRow::percentOfRoof() const {
  return flops && roofUs > 0 ? std::optional(100 * (*flops / us) / (MatrixRoof::flops() / roofUs)) : std::nullopt;
}

std::optional<double> BenchRow::visitedPercentOfRoof() const {
  return roofUs > 0 ? std::optional(100 * (visitedFlops / us) / (MatrixRoof::flops() / roofUs)) : std::nullopt;
}

Result<BenchRow> measure(const BenchSetup &setup, MatrixRoof *roof) {
  constexpr uint64_t kSeed = 2; // tuning used 1
  HEDDLE_ASSIGN(Found found, findKernel(setup));
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  AttentionSizes sizes{shape.batch,   shape.seqlenQ,    shape.seqlenK,    shape.heads,
                       shape.kvHeads, workload.headDim, workload.valueDim};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, workload.dtype, kSeed));
  float scale = 1 / std::sqrt(static_cast<float>(workload.headDim));
  oracle::ReferenceRows reference = referenceOf(setup.file, shape, inputs, scale, setup.verifiedRows);

  BenchRow row;
  row.pattern = found.name;
  row.workload = workload;
  row.match = found.match;
  HEDDLE_ASSIGN(ConfigSummary config, summarizeConfig(found.record.config));
  row.config = config.skeleton + " " + config.line;
  if (!setup.skeleton.empty() && config.skeleton != setup.skeleton)
    return Status::unsupported("the fastest kernel that " + setup.database.path() + " knows is of " + config.skeleton +
                               ", not of " + setup.skeleton + "; give a database of its own with --db");
  attn::ProblemSizes positions = sizesOf(setup.file, shape);
  double flopsPerPair = 2.0 * (workload.headDim + workload.valueDim) * shape.batch;
  HEDDLE_ASSIGN(row.flops, keptFlops(setup.file, shape, workload.headDim, workload.valueDim));
  attn::TileCounts tiles =
      attn::countTiles(setup.file.analysis(), positions, {config.blockM, config.blockN}, attn::Direction::Forward);
  row.visitedFlops = flopsPerPair * static_cast<double>(tiles.visited) * config.blockM * config.blockN;

  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(setup.device, {setup.file, shape, inputs, scale}));
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(setup.device, found.record));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
  HEDDLE_TRY(timeInTurn(setup, launch, roof, row));
  HEDDLE_ASSIGN(row.verified, problem.compare(reference));
  HEDDLE_ASSIGN(row.missing, problem.countNaN());
  row.verified.ok &= row.missing == 0;
  if (!setup.launcher.empty() && row.verified.ok)
    HEDDLE_TRY(measureElsewhere(setup, found, kSeed, row, reference));
  return row;
}

void printRow(const BenchRow &row, bool withHeader) {
  if (withHeader)
    printTo(std::cout, "%-16s %5s %8s %6s %4s %10s %9s %7s %9s %10s %10s %6s  %s\n", "pattern", "batch", "seqlen",
            "heads", "d", "us", "TFLOP/s", "% roof", "% visited", "error", "allowed", "right", "kernel");
  const ProblemShape &shape = row.workload.shape;
  printTo(std::cout, "%-16s %5lld %8lld %6lld %4lld %10.1f %9s %7s %9s %10.2e %10.2e %6s  %s: %s\n",
          row.pattern.c_str(), (long long)shape.batch, (long long)shape.seqlenQ, (long long)shape.heads,
          (long long)row.workload.headDim, row.us, rateText(row.tflops()).c_str(),
          rateText(row.percentOfRoof()).c_str(), rateText(row.visitedPercentOfRoof()).c_str(), row.verified.maxError,
          row.verified.allowedError, row.verified.ok ? "yes" : "NO", row.match.c_str(), row.config.c_str());
  std::cout.flush();
}

Json rowsJson(const std::vector<BenchRow> &rows, const std::string &device) {
  Json list = Json::array();
  for (const BenchRow &row : rows) {
    const ProblemShape &shape = row.workload.shape;
    list.push_back({{"pattern", row.pattern},
                    {"batch", shape.batch},
                    {"seqlen_q", shape.seqlenQ},
                    {"seqlen_k", shape.seqlenK},
                    {"heads", shape.heads},
                    {"kv_heads", shape.kvHeads},
                    {"head_dim", row.workload.headDim},
                    {"value_dim", row.workload.valueDim},
                    {"dtype", dtypeName(row.workload.dtype)},
                    {"median_us", row.us},
                    {"roof_us", row.roofUs},
                    {"launcher_us", row.launcherUs},
                    {"tflops", rateJson(row.tflops())},
                    {"percent_of_roof", rateJson(row.percentOfRoof())},
                    {"visited_percent_of_roof", rateJson(row.visitedPercentOfRoof())},
                    {"max_error", row.verified.maxError},
                    {"allowed_error", row.verified.allowedError},
                    {"max_lse_error", row.verified.maxLseError},
                    {"missing", row.missing},
                    {"ok", row.verified.ok},
                    {"match", row.match},
                    {"config", row.config}});
  }
  return {{"device", device}, {"roof", "bf16 matrix product 8192^3 of the same run"}, {"rows", list}};
}

} // namespace heddle::cli
