//===- BenchRow.cpp - one measured workload -------------------------------===//
#include "compiler/Tools/BenchRow.h"
#include "compiler/Session/ChooseKernel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Measure/LauncherProcess.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"

#include <iostream>
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle::cli {
namespace {

KernelShape kernelShapeOf(const Workload &workload, const GpuArch &arch, const KindSpec &kind) {
  KernelShape shape;
  shape.arch = &arch;
  shape.kind = kind.name;
  shape.dtype = workload.dtype;
  shape.headDim = workload.headDim;
  shape.valueDim = workload.valueDim;
  shape.queries = workload.shape.seqlenQ;
  return shape;
}

/// Of calls of the kind: that of the workload, or forward for what such calls read.
Result<ChosenKernel> kernelFor(const BenchSetup &setup, const KindSpec &kind) {
  HEDDLE_ASSIGN(const GpuArch *arch, archOf(setup.device));
  HEDDLE_ASSIGN(StoreStack stores, setup.database.openForLookup());
  const Workload &workload = setup.workload;
  return chooseKernel(
      {setup.file, workload.shape, kernelShapeOf(workload, *arch, kind), &kind == workload.kind ? setup.config : ""},
      stores, setup.device);
}

Result<AttentionInputs> inputsOf(const BenchSetup &setup, float scale, uint64_t seed) {
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  const AttentionSizes sizes{shape.batch,   shape.seqlenQ,    shape.seqlenK,    shape.heads,
                             shape.kvHeads, workload.headDim, workload.valueDim};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, workload.dtype, seed, *workload.kind));
  HEDDLE_TRY(addFromForward(inputs, [&](const AttentionInputs &given) -> Result<RoleTensors> {
    HEDDLE_ASSIGN(ChosenKernel forward, kernelFor(setup, kinds().front()));
    return launchOnce(setup.device, {setup.file, shape, given, scale}, forward.record);
  }));
  return inputs;
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

/// The same call in the second process, checked here.
Status measureElsewhere(const BenchSetup &setup, uint64_t seed, const oracle::KindReference &reference, BenchRow &row) {
  const Workload &workload = setup.workload;
  const LauncherCall call{setup.launcher,   setup.database.path(), setup.database.shippedPaths(),
                          row.pattern,      workload.kind,         workload.dtype,
                          workload.headDim, workload.valueDim,     seed,
                          setup.repetitions};
  HEDDLE_ASSIGN(LauncherAnswer answer, launchElsewhere(setup.file, workload.shape, call));
  row.launcherUs = answer.medianUs;
  row.match = answer.match;
  row.verified = reference.compare(oracle::rowsOf(answer.results));
  return {};
}

/// None where the kind knows no pairs.
std::optional<double> visitedFlopsOf(const BenchSetup &setup, const ConfigSummary &config) {
  const Workload &workload = setup.workload;
  const int64_t ofPair = workload.kind->flopsOfPair(workload.headDim, workload.valueDim);
  if (!ofPair)
    return std::nullopt;
  const bool walksKeys = workload.kind->isBackward();
  const attn::TileShape tile{walksKeys ? config.blockN : config.blockM, walksKeys ? config.blockM : config.blockN};
  const attn::Direction direction = walksKeys ? attn::Direction::Transposed : attn::Direction::Forward;
  const attn::TileCounts tiles =
      attn::countTiles(setup.file.analysis(), sizesOf(setup.file, workload.shape), tile, direction);
  return double(ofPair) * workload.shape.batch * static_cast<double>(tiles.visited) * config.blockM * config.blockN;
}

} // namespace

std::optional<double> BenchRow::tflops() const { return teraflops(flops, us); }

std::optional<double> BenchRow::percentOfRoof() const {
  return flops && roofUs > 0 ? std::optional(100 * (*flops / us) / (MatrixRoof::flops() / roofUs)) : std::nullopt;
}

std::optional<double> BenchRow::visitedPercentOfRoof() const {
  return visitedFlops && roofUs > 0 ? std::optional(100 * (*visitedFlops / us) / (MatrixRoof::flops() / roofUs))
                                    : std::nullopt;
}

Result<BenchRow> measure(const BenchSetup &setup, MatrixRoof *roof) {
  constexpr uint64_t kSeed = 2; // tuning used 1
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(setup, *workload.kind));
  BenchRow row;
  attn::PatternOp pattern = setup.file.pattern();
  row.pattern = pattern.getSymName().str();
  row.workload = workload;
  row.match = chosen.match;
  HEDDLE_ASSIGN(ConfigSummary config, summarizeConfig(chosen.record.config));
  row.config = config.skeleton + " " + config.line;
  if (!setup.skeleton.empty() && config.skeleton != setup.skeleton)
    return Status::unsupported("the fastest kernel that " + setup.database.path() + " knows is of " + config.skeleton +
                               ", not of " + setup.skeleton + "; give a database of its own with --db");
  HEDDLE_ASSIGN(row.flops,
                keptFlops(setup.file, shape, workload.kind->flopsOfPair(workload.headDim, workload.valueDim)));
  row.visitedFlops = visitedFlopsOf(setup, config);

  const float scale = 1 / std::sqrt(static_cast<float>(workload.headDim));
  HEDDLE_ASSIGN(AttentionInputs inputs, inputsOf(setup, scale, kSeed));
  const DeviceCall call{setup.file, shape, inputs, scale};
  const auto reference = oracle::referenceOf(definitionOf(call), setup.verifiedRows);
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(setup.device, call));
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(setup.device, chosen.record));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
  HEDDLE_TRY(timeInTurn(setup, launch, roof, row));
  HEDDLE_ASSIGN(row.verified, problem.compare(*reference));
  HEDDLE_ASSIGN(row.missing, problem.countNaN());
  if (!setup.launcher.empty() && row.isRight())
    HEDDLE_TRY(measureElsewhere(setup, kSeed, *reference, row));
  return row;
}

void printRow(const BenchRow &row, bool withHeader) {
  if (withHeader)
    printTo(std::cout, "%-16s %5s %8s %6s %4s %10s %9s %7s %9s %10s %10s %6s  %s\n", "pattern", "batch", "seqlen",
            "heads", "d", "us", "TFLOP/s", "% roof", "% visited", "error", "allowed", "right", "kernel");
  const ProblemShape &shape = row.workload.shape;
  const oracle::RoleReport &worst = row.verified.worst();
  printTo(std::cout, "%-16s %5lld %8lld %6lld %4lld %10.1f %9s %7s %9s %10.2e %10.2e %6s  %s: %s\n",
          row.pattern.c_str(), (long long)shape.batch, (long long)shape.seqlenQ, (long long)shape.heads,
          (long long)row.workload.headDim, row.us, rateText(row.tflops()).c_str(),
          rateText(row.percentOfRoof()).c_str(), rateText(row.visitedPercentOfRoof()).c_str(), worst.maxError,
          worst.allowedError, row.isRight() ? "yes" : "NO", row.match.c_str(), row.config.c_str());
  std::cout.flush();
}

Json rowsJson(const std::vector<BenchRow> &rows, const std::string &device) {
  Json list = Json::array();
  for (const BenchRow &row : rows) {
    const ProblemShape &shape = row.workload.shape;
    list.push_back({{"pattern", row.pattern},
                    {"kind", row.workload.kind->name},
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
                    {"missing", row.missing},
                    {"ok", row.isRight()},
                    {"match", row.match},
                    {"config", row.config}});
    list.back().update(errorsJson(row.verified));
  }
  return {{"device", device}, {"roof", "bf16 matrix product 8192^3 of the same run"}, {"rows", list}};
}

} // namespace heddle::cli
