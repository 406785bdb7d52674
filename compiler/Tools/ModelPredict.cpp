//===- ModelPredict.cpp - heddle model predict ----------------------------===//
// Orders the configurations of a problem by their estimated time on a GPU that need not be at hand, and says what the
// estimate rests on.
//===----------------------------------------------------------------------===//
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Session/TunePrior.h"
#include "compiler/Tools/Model.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "runtime/Core/CountText.h"
#include "tuner/Search/Strategies.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct PredictOptions {
  ModelProblem problem;
  std::string gpu = "h200", model;
  size_t top = 10;
  bool json = false;
};

/// What the numbers rest on.
std::string basisOf(const PredictOptions &options, const GpuModel &gpu, const TuneSpace &space) {
  if (!options.model.empty())
    return "parameters of '" + options.model + "' at the rates of " + std::string(gpu.fullName);
  const std::string fittedOn = shippedCosts(space.familyName())->gpu;
  if (gpu.name == fittedOn)
    return "parameters fitted on this GPU";
  return "predicted from the data sheet of " + std::string(gpu.fullName) + ", with parameters fitted on " + fittedOn +
         "; not measured";
}

Result<tuner::CostModel> modelFor(const PredictOptions &options, const std::string &skeleton) {
  if (!options.model.empty())
    return loadCostModel(options.model);
  const ShippedCosts *shipped = shippedCosts(skeleton);
  return shipped ? Result<tuner::CostModel>(shipped->model)
                 : Status::unsupported("no cost model ships for kernels of " + skeleton + ": give one with --model");
}

Status predict(const PredictOptions &options) {
  HEDDLE_ASSIGN(const GpuModel *gpu, findGpuModel(options.gpu));
  HEDDLE_ASSIGN(const GpuArch *arch, findGpuArch(gpu->arch));
  HEDDLE_ASSIGN(LoadedProblem loaded, loadProblem(options.problem, *arch));
  HEDDLE_ASSIGN(tuner::CostModel model, modelFor(options, loaded.space->familyName()));
  HEDDLE_ASSIGN(TunePrior prior, modelPrior(loaded.space, loaded.shape, *gpu, model));
  HEDDLE_ASSIGN(tuner::Enumeration all, loaded.space->space().enumerate());
  tuner::sortByPrior(all.points, prior.cost);
  const std::string basis = basisOf(options, *gpu, *loaded.space);
  Json json = {{"gpu", gpu->name},
               {"basis", basis},
               {"skeleton", loaded.space->familyName()},
               {"feasible", all.points.size()},
               {"candidates", Json::array()}};
  if (!options.json)
    printTo(std::cout, "%s: %s of %s\n%s\n", std::string(gpu->fullName).c_str(),
            counted(all.points.size(), "feasible configuration").c_str(), loaded.space->familyName().c_str(),
            basis.c_str());
  for (size_t i = 0; i < std::min(options.top, all.points.size()); ++i) {
    const double us = prior.cost(all.points[i]);
    const std::string config = loaded.space->space().text(all.points[i]);
    if (options.json)
      json["candidates"].push_back({{"estimate_us", us}, {"config", config}});
    else
      printTo(std::cout, "  %10.1f us  %s\n", us, config.c_str());
  }
  if (options.json)
    printJson(json);
  return {};
}

} // namespace

Action addModelPredict(CLI::App &command) {
  auto options = std::make_shared<PredictOptions>();
  options->problem.add(command);
  addValue(command, "--gpu", options->gpu, "NAME", "GPU whose data sheet gives the rates")
      ->capture_default_str()
      ->check(gpuName());
  addValue(command, "--model", options->model, "FILE", "Parameters that `heddle model fit` wrote [those shipped]");
  addCount(command, "--top", options->top, "N", "So many of the fastest")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  addJsonOption(command, options->json);
  return [options] {
    if (Status usage = options->problem.shape.check(); !usage.isOk())
      return failUsage(usage);
    if (int code = checkNames(options->problem); code != Ok)
      return code;
    return finish(predict(*options));
  };
}

} // namespace heddle::cli
