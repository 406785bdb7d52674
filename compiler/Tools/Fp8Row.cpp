#include "compiler/Tools/Fp8Row.h"
#include "compiler/Io/QuantizedInputs.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Tools/BenchRow.h"
#include "compiler/Tools/SafeStream.h"

#include <cmath>
#include <iostream>

namespace heddle::cli {
namespace {

constexpr uint64_t kSeed = 2; // as for other rows

/// The same workload of another kind and in bf16, by its own kernel.
BenchSetup inBf16(BenchSetup setup, const Kind &kind) {
  const int64_t scaleRows = kind.takesScaleRows() && kind != Kind() ? setup.workload.elements.scaleRows : 0;
  setup.workload.elements = CallElements(DType::bf16).withScaleRows(scaleRows);
  setup.workload.kind = kind;
  setup.config.clear();
  return setup;
}

/// A call on the device, and a kernel for it.
struct Side {
  DeviceProblem problem;
  ChosenKernel chosen;
  LoadedLaunch loaded;

  static Result<Side> create(const BenchSetup &setup, const AttentionInputs &inputs, float scale) {
    HEDDLE_ASSIGN(ChosenKernel chosen, kernelFor(setup, setup.workload.kind));
    HEDDLE_ASSIGN(DeviceProblem problem,
                  DeviceProblem::create(setup.device, {setup.file, setup.workload.shape, inputs, scale}));
    HEDDLE_ASSIGN(LoadedLaunch loaded, loadFor(problem, setup, chosen.record));
    return Side{std::move(problem), std::move(chosen), std::move(loaded)};
  }

  Status launch() const { return loaded.launch.launch(nullptr); }
  Result<RoleTensors> results() const {
    RoleTensors results = problem.emptyResults();
    HEDDLE_TRY(launch());
    HEDDLE_TRY(problem.download(results));
    return results;
  }
};

Result<AttentionInputs> randomInputs(const BenchSetup &setup) {
  const Workload &workload = setup.workload;
  const ProblemShape &shape = workload.shape;
  return randomAttentionInputs(
      {shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, workload.headDim, workload.valueDim},
      DType::bf16, kSeed);
}

double relativeError(const HostTensor &got, const HostTensor &wanted) {
  double error = 0, size = 0;
  for (int64_t i = 0, end = wanted.elements(); i < end; ++i) {
    const double value = wanted.get(i), difference = got.get(i) - value;
    error += difference * difference, size += value * value;
  }
  return std::sqrt(error / size);
}

Status timeRow(const BenchSetup &setup, const Side &high, const Side &quantize, const Side &low, MatrixRoof *roof,
               Fp8Row &row) {
  std::vector<Launch> launches = {[&] { return high.launch(); }, [&] { return low.launch(); },
                                  [&] { return quantize.launch(); },
                                  [&]() -> Status {
                                    HEDDLE_TRY(quantize.launch());
                                    return low.launch();
                                  }};
  if (roof)
    launches.push_back([&] { return roof->launch(); });
  HEDDLE_ASSIGN(const std::vector<double> medians, timeInTurn(setup, launches));
  row.bf16Us = medians[0], row.us = medians[1], row.quantizeUs = medians[2], row.bothUs = medians[3];
  row.roofUs = roof ? medians[4] : 0;
  return {};
}

} // namespace

std::optional<double> Fp8Row::percentOfRoof() const {
  return flops && roofUs > 0 ? std::optional(100 * (*flops / us) / (MatrixRoof::flops() / roofUs)) : std::nullopt;
}

Result<Fp8Row> measureFp8(const BenchSetup &setup, bool rotates, MatrixRoof *roof) {
  const Workload &workload = setup.workload;
  const float scale = 1 / std::sqrt(static_cast<float>(workload.headDim));
  HEDDLE_ASSIGN(AttentionInputs inputs, randomInputs(setup));
  HEDDLE_ASSIGN(const Side high, Side::create(inBf16(setup, Kind()), inputs, scale));
  inputs.kind = {rotates ? KindBase::quantizeRotated : KindBase::quantize};
  inputs.kind.hasKeyMajorValues = workload.kind.hasKeyMajorValues;
  inputs.setScaleRows(workload.elements.scaleRows);
  if (rotates)
    inputs.rotation = randomSigns({workload.headDim}, kSeed, specOf(Role::rotation).name);
  HEDDLE_ASSIGN(const Side quantize, Side::create(inBf16(setup, inputs.kind), inputs, scale));
  HEDDLE_ASSIGN(RoleTensors quantized, quantize.results());
  AttentionInputs lowInputs = inputsOfQuantized(std::move(quantized), inputs);
  lowInputs.precision = workload.elements.precision;
  HEDDLE_ASSIGN(const Side low, Side::create(setup, lowInputs, scale));

  Fp8Row row;
  row.pattern = setup.file.pattern().getSymName().str();
  row.workload = workload;
  row.isRotated = rotates;
  row.match = low.chosen.match;
  HEDDLE_ASSIGN(const ConfigSummary config, summarizeConfig(low.chosen.record.config));
  row.config = config.skeleton + " " + config.line;
  HEDDLE_TRY(checkSkeleton(setup, config));
  HEDDLE_ASSIGN(row.flops,
                keptFlops(setup.file, workload.shape, workload.kind.flopsOfPair(workload.headDim, workload.valueDim)));
  const auto reference =
      oracle::referenceOf(definitionOf({setup.file, workload.shape, lowInputs, scale}), setup.verifiedRows);
  HEDDLE_TRY(timeRow(setup, high, quantize, low, roof, row));
  HEDDLE_ASSIGN(row.verified, low.problem.compare(*reference));
  HEDDLE_ASSIGN(row.missing, low.problem.countNaN());
  HEDDLE_ASSIGN(const RoleTensors wanted, high.results());
  HEDDLE_ASSIGN(const RoleTensors got, low.results());
  row.rmsError = relativeError(got.out, wanted.out);
  return row;
}

void printRow(const Fp8Row &row, bool withHeader) {
  if (withHeader)
    printTo(std::cout, "%-16s %5s %8s %6s %4s %10s %10s %9s %7s %8s %10s %8s %9s %10s %10s %6s  %s\n", "pattern",
            "batch", "seqlen", "heads", "d", "bf16 us", "e4m3 us", "TFLOP/s", "% roof", "x bf16", "quantised", "x bf16",
            "rms", "error", "allowed", "right", "kernel");
  const ProblemShape &shape = row.workload.shape;
  const oracle::RoleReport &worst = row.verified.worst();
  printTo(std::cout,
          "%-16s %5lld %8lld %6lld %4lld %10.1f %10.1f %9s %7s %8.2f %10.1f %8.2f %9.1e %10.2e %10.2e %6s  %s: %s\n",
          row.pattern.c_str(), (long long)shape.batch, (long long)shape.seqlenQ, (long long)shape.heads,
          (long long)row.workload.headDim, row.bf16Us, row.us, rateText(row.tflops()).c_str(),
          rateText(row.percentOfRoof()).c_str(), row.bf16Us / row.us, row.bothUs, row.bf16Us / row.bothUs, row.rmsError,
          worst.maxError, worst.allowedError, row.isRight() ? "yes" : "NO", row.match.c_str(), row.config.c_str());
  std::cout.flush();
}

Json rowsJson(const std::vector<Fp8Row> &rows, const std::string &device) {
  Json list = Json::array();
  for (const Fp8Row &row : rows) {
    list.push_back(callJson(row.pattern, row.workload));
    list.back().update({{"rotated", row.isRotated},
                        {"precision", precisionName(row.workload.elements.precision)},
                        {"scale_rows", row.workload.elements.scaleRows},
                        {"median_us", row.us},
                        {"bf16_us", row.bf16Us},
                        {"quantize_us", row.quantizeUs},
                        {"quantize_and_attend_us", row.bothUs},
                        {"roof_us", row.roofUs},
                        {"tflops", rateJson(row.tflops())},
                        {"percent_of_roof", rateJson(row.percentOfRoof())},
                        {"times_bf16", row.bf16Us / row.us},
                        {"quantized_times_bf16", row.bf16Us / row.bothUs},
                        {"rms_error", std::isfinite(row.rmsError) ? Json(row.rmsError) : Json()},
                        {"missing", row.missing},
                        {"ok", row.isRight()},
                        {"match", row.match},
                        {"config", row.config}});
    list.back().update(errorsJson(row.verified));
  }
  return {{"device", device}, {"roof", "bf16 matrix product 8192^3 of the same run"}, {"rows", list}};
}

} // namespace heddle::cli
