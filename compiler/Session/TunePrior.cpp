#include "compiler/Session/TunePrior.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "runtime/Core/KernelRecord.h"

#include <cmath>

namespace heddle {

Result<GpuModel> ratesOfDevice(const DeviceIdentity &device) {
  Result<const GpuModel *> model = findGpuModel(device.deviceName);
  if (!model)
    model = findGpuModel(device.arch);
  HEDDLE_TRY(model.status());
  GpuModel rates = **model;
  rates.smCount = int(device.smCount);
  return rates;
}

Result<TunePrior> modelPrior(std::shared_ptr<const TuneSpace> space, const ProblemShape &shape, const GpuModel &gpu,
                             const tuner::CostModel &model) {
  if (model.family != space->familyName())
    return Status::invalidArgument("the cost model is for kernels of " + model.family + ", not of " +
                                   space->familyName());
  HEDDLE_ASSIGN(std::shared_ptr<ScheduleCost> cost,
                ScheduleCost::create(space->pattern(), shape, space->request(), gpu));
  auto features = std::make_shared<tuner::CostFeatures>();
  TunePrior prior;
  prior.isModel = true;
  prior.basis = "the cost model at the rates of " + std::string(gpu.fullName);
  prior.cost = [space, cost, features, model](const tuner::Point &point) {
    cost->describe(space->configAt(point), size_t(space->distanceFromDefault(point)), *features);
    return model.estimate(*features);
  };
  return prior;
}

TunePrior distancePrior(std::shared_ptr<const TuneSpace> space) {
  constexpr double kCostOfChange = 0.02;
  TunePrior prior;
  prior.basis = "the number of changes from the default";
  prior.cost = [space](const tuner::Point &point) {
    return std::exp(kCostOfChange * space->distanceFromDefault(point));
  };
  return prior;
}

TunePrior shippedPrior(std::shared_ptr<const TuneSpace> space, const ProblemShape &shape, const Result<GpuModel> &gpu) {
  const tuner::CostModel *shipped = shippedCosts(space->familyName());
  std::string whyNot;
  if (!shipped) {
    whyNot = "no cost model is fitted for " + space->familyName();
  } else if (!gpu) {
    whyNot = gpu.status().message();
  } else {
    Result<TunePrior> prior = modelPrior(space, shape, *gpu, *shipped);
    if (prior)
      return prior.take();
    whyNot = prior.status().message();
  }
  TunePrior prior = distancePrior(std::move(space));
  prior.basis += ": " + whyNot;
  return prior;
}

} // namespace heddle
