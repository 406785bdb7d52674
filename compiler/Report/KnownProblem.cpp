#include "compiler/Report/KnownProblem.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Pattern/CallRows.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/TunePrior.h"
#include "compiler/Views/Explanation.h"
#include "runtime/Core/FieldText.h"
#include "tuner/Model/Spearman.h"
#include "tuner/Space/Trial.h"

namespace heddle::report {

double timeOf(const Trial &trial) {
  Result<tuner::Outcome> outcome = tuner::parseOutcome(trial.outcome);
  if (!outcome || tuner::isFailure(*outcome))
    return 0;
  return trial.medianUs > 0 ? trial.medianUs : trial.minUs;
}

Result<PreparedProblem> PreparedProblem::create(KnownProblem problem) {
  HEDDLE_TRY(checkShape(*problem.file, problem.shape));
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(*problem.file));
  KernelFamily family = familyOf(prepared, problem.kernel);
  return PreparedProblem(std::move(problem), std::move(prepared), std::move(family));
}

bool PreparedProblem::isOf(const WinnerKey &key) const {
  KernelFamily written = key;
  written.generator = family.generator;
  return fieldsEqual(written, family) &&
         fieldsEqual(static_cast<const ExactProblem &>(key), exactProblem(problem.shape));
}

Rates PreparedProblem::ratesOn(const DeviceIdentity &device) const {
  Rates rates;
  const Result<const GpuModel *> gpu = findGpuModel(device.deviceName);
  const ProblemShape &shape = problem.shape;
  views::ExplainRequest request;
  request.kind = problem.kernel.kind;
  request.sizes = sizesOf(*problem.file, shape);
  request.operands = shape.operands;
  request.batch = shape.batch;
  request.kvHeads = shape.kvHeads;
  request.headDim = problem.kernel.headDim;
  request.valueDim = problem.kernel.valueDim;
  request.dtype = problem.kernel.elements.q;
  request.precision = problem.kernel.elements.precision;
  request.tile = {128, 128};
  request.gpu = gpu ? *gpu : &gpuModels().front();
  const Result<views::Explanation> said = views::explain(*problem.file, request);
  if (!said || !said->flops) {
    rates.note = said ? "kept pairs were not counted: " + said->keptPairsNote : said.status().message();
    return rates;
  }
  rates.flops = double(*said->flops);
  if (!gpu) {
    rates.note = "no data sheet of '" + device.deviceName + "' is known, so there is no roof";
  } else if (said->roofline && said->roofline->ms > 0) {
    rates.roofUs = 1000 * said->roofline->ms;
    rates.isComputeBound = said->roofline->isComputeBound;
  } else {
    rates.note = "nothing is kept, so there is no roof";
  }
  return rates;
}

/// The space in which a tune of the call on that GPU searches.
static Result<std::shared_ptr<const TuneSpace>> spaceOn(const PreparedPattern &prepared, const KnownProblem &problem,
                                                        const GpuModel &gpu) {
  KernelShape shape = problem.kernel;
  HEDDLE_ASSIGN(shape.arch, findGpuArch(gpu.arch));
  shape.queryRows = queryRowsOf(problem.shape, shape);
  return TuneSpace::create(prepared, shape, "");
}

static std::optional<double> correlation(const std::vector<Trial> &trials, const std::vector<double> &estimates) {
  std::vector<double> cost, time;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (estimates[i] <= 0 || timeOf(trials[i]) <= 0)
      continue;
    cost.push_back(estimates[i]);
    time.push_back(timeOf(trials[i]));
  }
  constexpr size_t kFewest = 3; // two always agree or disagree
  return cost.size() < kFewest ? std::nullopt : std::optional<double>(tuner::spearman(cost, time));
}

Estimates PreparedProblem::estimatesOf(const std::vector<Trial> &trials, const DeviceIdentity &device,
                                       const std::string &winner) const {
  Estimates result;
  result.us.resize(trials.size());
  const Result<GpuModel> gpu = ratesOfDevice(device);
  if (!gpu) {
    result.basis = gpu.status().message();
    return result;
  }
  Result<std::shared_ptr<const TuneSpace>> space = spaceOn(prepared, problem, *gpu);
  if (!space) {
    result.basis = space.status().message();
    return result;
  }
  result.defaultConfig = (*space)->defaultPoint();
  if (Result<std::string> point = (*space)->pointOf(winner))
    result.winnerConfig = point.take();
  const TunePrior prior = shippedPrior(*space, problem.shape, gpu);
  result.basis = prior.basis;
  if (!prior.isModel)
    return result;
  for (size_t i = 0; i < trials.size(); ++i)
    if (Result<tuner::Point> point = (*space)->space().parse(trials[i].config))
      result.us[i] = prior.cost(*point);
  result.spearman = correlation(trials, result.us);
  return result;
}

} // namespace heddle::report
