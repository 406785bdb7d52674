#include "compiler/Tools/BenchRow.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Views/ExplanationPrint.h"

#include <iostream>
#include <cmath>

namespace heddle::cli {
namespace {

Result<AttentionInputs> inputsOf(const BenchSetup &setup, float scale, uint64_t seed) {
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  const AttentionSizes sizes{shape.batch,   shape.seqlenQ,    shape.seqlenK,    shape.heads,
                             shape.kvHeads, workload.headDim, workload.valueDim};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, workload.elements.q, seed, workload.kind));
  inputs.precision = workload.elements.precision;
  HEDDLE_TRY(addFromForward(inputs, [&](const AttentionInputs &given) -> Result<RoleTensors> {
    HEDDLE_ASSIGN(ChosenKernel forward, kernelFor(setup, Kind()));
    return launchOnce(setup.device, {setup.file, shape, given, scale}, forward.record);
  }));
  return inputs;
}

/// Of a deterministic kind: what its kernel is compared with.
Status addOtherOrder(const BenchSetup &setup, DeviceProblem &problem, BenchRow &row,
                     std::optional<LoadedLaunch> &other) {
  Kind kind = setup.workload.kind;
  if (!kind.isDeterministic)
    return {};
  kind.isDeterministic = false;
  HEDDLE_ASSIGN(const ChosenKernel chosen, kernelFor(setup, kind));
  HEDDLE_ASSIGN(const ConfigSummary config, summarizeConfig(chosen.record.config));
  row.inAnyOrder = OtherOrder{kind, config.skeleton + " " + config.line, {}};
  if (!config.addedInAnyOrder.empty()) {
    HEDDLE_ASSIGN(other, loadFor(problem, setup, chosen.record));
  }
  return {};
}

/// Times the kernel in turn with the matrix product, and with the kernel that it is compared with.
Status timeRow(const BenchSetup &setup, DeviceProblem &problem, const PreparedLaunch &launch, MatrixRoof *roof,
               BenchRow &row) {
  std::optional<LoadedLaunch> other;
  HEDDLE_TRY(addOtherOrder(setup, problem, row, other));
  std::vector<Launch> launches = {[&] { return launch.launch(nullptr); }};
  if (roof)
    launches.push_back([&] { return roof->launch(); });
  if (other)
    launches.push_back([&] { return other->launch.launch(nullptr); });
  HEDDLE_ASSIGN(const std::vector<double> medians, timeInTurn(setup, launches));
  row.us = medians[0];
  row.roofUs = roof ? medians[1] : 0;
  if (other)
    row.inAnyOrder->us = medians.back();
  return {};
}

/// By the formulas of the plan, as `heddle explain` says it.
Result<views::WorkspaceExplanation> workspaceOf(const BenchSetup &setup, const LaunchPlan &plan) {
  const ProblemShape &shape = setup.workload.shape;
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = shape.batch;
  symbols[LaunchSymbol::heads] = shape.heads;
  symbols[LaunchSymbol::kvHeads] = shape.kvHeads;
  symbols[LaunchSymbol::seqlenQ] = shape.seqlenQ;
  symbols[LaunchSymbol::seqlenK] = shape.seqlenK;
  symbols[LaunchSymbol::headDim] = setup.workload.headDim;
  symbols[LaunchSymbol::valueDim] = setup.workload.valueDim;
  symbols[LaunchSymbol::smCount] = setup.device.info().identity.smCount;
  symbols.params = shape.parameters.data(), symbols.paramCount = int64_t(shape.parameters.size());
  return views::workspaceOf(plan, symbols);
}

/// None where the kind knows no pairs.
std::optional<double> visitedFlopsOf(const BenchSetup &setup, const ConfigSummary &config) {
  const Workload &workload = setup.workload;
  const int64_t ofPair = workload.kind.flopsOfPair(workload.headDim, workload.valueDim);
  if (!ofPair)
    return std::nullopt;
  const bool walksKeys = workload.kind.isBackward();
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

std::optional<double> BenchRow::priceOfDeterminism() const {
  return inAnyOrder && inAnyOrder->us ? std::optional(100 * (us / *inAnyOrder->us - 1)) : std::nullopt;
}

Result<BenchRow> measure(const BenchSetup &setup, MatrixRoof *roof) {
  constexpr uint64_t kSeed = 2; // tuning used 1
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(setup, workload.kind));
  BenchRow row;
  attn::PatternOp pattern = setup.file.pattern();
  row.pattern = pattern.getSymName().str();
  row.workload = workload;
  row.match = chosen.match;
  HEDDLE_ASSIGN(ConfigSummary config, summarizeConfig(chosen.record.config));
  row.config = config.skeleton + " " + config.line;
  HEDDLE_TRY(checkSkeleton(setup, config));
  HEDDLE_ASSIGN(row.flops,
                keptFlops(setup.file, shape, workload.kind.flopsOfPair(workload.headDim, workload.valueDim)));
  row.visitedFlops = visitedFlopsOf(setup, config);

  const float scale = 1 / std::sqrt(static_cast<float>(workload.headDim));
  HEDDLE_ASSIGN(AttentionInputs inputs, inputsOf(setup, scale, kSeed));
  const DeviceCall call{setup.file, shape, inputs, scale};
  const auto reference = oracle::referenceOf(definitionOf(call), setup.verifiedRows);
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(setup.device, call));
  HEDDLE_ASSIGN(const LoadedLaunch loaded, loadFor(problem, setup, chosen.record));
  HEDDLE_ASSIGN(row.workspace, workspaceOf(setup, loaded.kernel.plan()));
  HEDDLE_TRY(timeRow(setup, problem, loaded.launch, roof, row));
  HEDDLE_TRY(problem.poison()); // what was added to has many calls in it
  HEDDLE_TRY(loaded.launch.launch(nullptr));
  HEDDLE_ASSIGN(row.verified, problem.compare(*reference));
  HEDDLE_ASSIGN(row.missing, problem.countNaN());
  return row;
}

/// What gradients need and cost beside their time, a line each.
static void printOfGradients(const BenchRow &row) {
  std::string parts;
  for (const views::RegionExplanation &region : row.workspace.regions)
    parts += (parts.empty() ? ": " : ", ") + region.name + " " + views::bytesText(double(region.bytes)) + " = " +
             region.formula;
  std::cout << "  workspace " << views::bytesText(double(row.workspace.bytes)) << parts << '\n';
  if (!row.verified.note.empty())
    std::cout << "  " << row.verified.note << '\n';
  if (!row.inAnyOrder)
    return;
  if (const std::optional<double> price = row.priceOfDeterminism())
    printTo(std::cout, "  deterministic: %+.1f%% (%.1f us of kind %s)\n", *price, *row.inAnyOrder->us,
            row.inAnyOrder->kind.name().c_str());
  else
    printTo(std::cout, "  deterministic: so is the kernel of kind %s\n", row.inAnyOrder->kind.name().c_str());
}

static Json workspaceJson(const views::WorkspaceExplanation &workspace) {
  Json regions = Json::array();
  for (const views::RegionExplanation &region : workspace.regions)
    regions.push_back({{"name", region.name}, {"formula", region.formula}, {"bytes", region.bytes}});
  return regions;
}

/// null for kinds that promise no bits.
static Json otherOrderJson(const BenchRow &row) {
  if (!row.inAnyOrder)
    return Json();
  return {{"kind", row.inAnyOrder->kind.name()},
          {"config", row.inAnyOrder->config},
          {"is_deterministic", !row.inAnyOrder->us},
          {"median_us", row.inAnyOrder->us ? Json(*row.inAnyOrder->us) : Json()},
          {"price_percent", rateJson(row.priceOfDeterminism())}};
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
  if (row.workload.kind.isBackward())
    printOfGradients(row);
  std::cout.flush();
}

Json callJson(const std::string &pattern, const Workload &workload) {
  const ProblemShape &shape = workload.shape;
  return {{"pattern", pattern},
          {"kind", workload.kind.str()},
          {"batch", shape.batch},
          {"seqlen_q", shape.seqlenQ},
          {"seqlen_k", shape.seqlenK},
          {"heads", shape.heads},
          {"kv_heads", shape.kvHeads},
          {"head_dim", workload.headDim},
          {"value_dim", workload.valueDim},
          {"dtype", dtypeName(workload.elements.q)}};
}

Json rowsJson(const std::vector<BenchRow> &rows, const std::string &device) {
  Json list = Json::array();
  for (const BenchRow &row : rows) {
    list.push_back(callJson(row.pattern, row.workload));
    list.back().update({{"median_us", row.us},
                        {"roof_us", row.roofUs},
                        {"tflops", rateJson(row.tflops())},
                        {"percent_of_roof", rateJson(row.percentOfRoof())},
                        {"visited_percent_of_roof", rateJson(row.visitedPercentOfRoof())},
                        {"workspace_bytes", row.workspace.bytes},
                        {"workspace_regions", workspaceJson(row.workspace)},
                        {"in_any_order", otherOrderJson(row)},
                        {"missing", row.missing},
                        {"note", row.verified.note},
                        {"ok", row.isRight()},
                        {"match", row.match},
                        {"config", row.config}});
    list.back().update(errorsJson(row.verified));
  }
  return {{"device", device}, {"roof", "bf16 matrix product 8192^3 of the same run"}, {"rows", list}};
}

} // namespace heddle::cli
