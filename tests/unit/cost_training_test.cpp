//===- cost_training_test.cpp - the cost model on what was measured ------------===//
// How well the model orders recorded candidates of workloads that it was not fitted on, that the shipped parameters are
// what the tables give, and the counts that it is made of.
#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Target/GpuModel.h"
#include "codegen/Choose/WorkCounts.h"
#include "compiler/Pattern/ProblemKey.h"
#include "tests/unit/recorded_workloads.h"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

using namespace heddle;
using namespace heddle::test;

namespace {

const tuner::CostModel &shippedModel(const std::string &skeleton) {
  const tuner::CostModel *shipped = shippedCosts(skeleton);
  REQUIRE(shipped);
  return *shipped;
}

void checkOrder(const CostTraining &training, size_t i) {
  auto fit = training.fit(i);
  REQUIRE_MESSAGE(fit.isOk(), fit.status().message());
  const tuner::RankReport report = training.rank(i, fit->model), changes = training.rankOfChanges(i);
  MESSAGE(training.familyName() << " " << std::string(recordedWorkloads()[i].table) << ": rank correlation "
                                << report.spearman << " (changes from the default: " << changes.spearman
                                << "), regret of top 1, 5, 10: " << report.regret1 << ", " << report.regret5 << ", "
                                << report.regret10 << "; within 2% after " << report.firstGood << " of "
                                << report.trials);
  CHECK(report.spearman > 0.65);
  CHECK(1 - report.spearman < (1 - changes.spearman) / 2); // the better the default, the better the order by changes
  CHECK(report.regret10 < 0.15);
  CHECK(report.firstGood * 10 <= report.trials);
}

WorkCounts countsOf(const LoadedWorkload &loaded) {
  auto counts = WorkCounts::create({&loaded.file->analysis()}, sizesOf(*loaded.file, loaded.shape), loaded.shape.batch);
  REQUIRE_MESSAGE(counts.isOk(), counts.status().message());
  return counts.take();
}

RecordedWorkload smallWorkload(const char *pattern, int64_t seqlen) { return {"", pattern, {}, 2, 4, 4, seqlen, 64}; }

Dealing dealing(int64_t blockM, bool takesStrides, int64_t blocks) {
  Dealing result;
  result.blockM = blockM;
  result.takesStrides = takesStrides;
  result.blocks = blocks;
  result.sectionPairs = 8;
  return result;
}

} // namespace

TEST_CASE("parameters fitted on the other workloads order the candidates of each") {
  for (const CostTraining &training : trainings())
    for (size_t i = 0; i < training.size(); ++i) {
      CAPTURE(std::string(recordedWorkloads()[i].table));
      checkOrder(training, i);
    }
}

TEST_CASE("the shipped parameters are what the tables give") {
  for (const CostTraining &training : trainings()) {
    auto fit = training.fit(std::nullopt);
    REQUIRE_MESSAGE(fit.isOk(), fit.status().message());
    CHECK(fit->rms < 0.15);
    const tuner::CostModel &shipped = shippedModel(training.familyName());
    CAPTURE(tuner::listOf(fit->model)); // what CostParameters.cpp is to hold
    for (size_t i = 0; i < training.size(); ++i)
      for (const tuner::PointTrial &trial : training.table(i).trials())
        REQUIRE(training.estimate(i, shipped, trial.point) ==
                doctest::Approx(training.estimate(i, fit->model, trial.point)).epsilon(0.002));
  }
}

TEST_CASE("tables of two families are not fitted together, and a model serves its own") {
  const RecordedWorkload &workload = recordedWorkloads()[0];
  CostTraining training = loadTraining(kHopper);
  const LoadedWorkload loaded = load(workload, kPortable);
  auto table =
      tuner::RecordedTable::load(std::string(test::places().data + "/tuner/portable/") + workload.table + ".csv");
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  const GpuModel &h200 = **findGpuModel("h200");
  const Status added = training.add(table.take(), loaded.space, loaded.shape, h200);
  CHECK(added.code() == StatusCode::invalidArgument);
  CHECK_MESSAGE(added.message().find("kernels of portable_forward, those of the tables before are of sm90_forward") !=
                    std::string::npos,
                added.message());
  auto prior = modelPrior(loaded.space, loaded.shape, h200, shippedModel(kHopper));
  CHECK_MESSAGE(prior.status().message().find("is for kernels of sm90_forward, not of portable_forward") !=
                    std::string::npos,
                prior.status().message());
  CHECK(shippedPrior(loaded.space, loaded.shape, h200).isModel);
  CHECK(!shippedCosts("another"));
}

TEST_CASE("the estimate grows with the work and shrinks with the GPU") {
  const LoadedWorkload few = load({"", "causal", {}, 1, 16, 16, 4096, 128}),
                       many = load({"", "causal", {}, 1, 16, 16, 16384, 128});
  const GpuModel h200 = **findGpuModel("h200");
  GpuModel twice = h200;
  twice.smCount *= 2, twice.bf16Tflops *= 2, twice.bandwidthGBps *= 2;
  auto estimate = [](const LoadedWorkload &loaded, const GpuModel &gpu) {
    auto prior = modelPrior(loaded.space, loaded.shape, gpu, shippedModel(kHopper));
    REQUIRE_MESSAGE(prior.isOk(), prior.status().message());
    auto points = loaded.space->space().enumerate();
    for (const tuner::Point &point : points->points)
      if (loaded.space->distanceFromDefault(point) == 0)
        return prior->cost(point);
    return 0.0;
  };
  CHECK(estimate(many, h200) > 8 * estimate(few, h200));
  CHECK(estimate(many, twice) < 0.7 * estimate(many, h200));
}

TEST_CASE(
    "an estimate needs no IR: it outlives the pattern's file and serves another thread, chained passes included") {
  LoadedWorkload loaded = load({"", "longvit_1k", {}, 1, 16, 16, 8192, 64});
  auto prior = modelPrior(loaded.space, loaded.shape, **findGpuModel("h200"), shippedModel(kHopper));
  REQUIRE_MESSAGE(prior.isOk(), prior.status().message());
  const tuner::SearchSpace &space = loaded.space->space();
  std::string text = loaded.space->defaultPoint();
  const size_t chained = text.find("chained_mib=256");
  REQUIRE_MESSAGE(chained != std::string::npos, text);
  const auto inPasses = space.parse(text);
  const auto fused = space.parse(text.replace(chained, std::string("chained_mib=256").size(), "chained_mib=0"));
  REQUIRE((inPasses.isOk() && fused.isOk()));
  loaded.file.reset();
  double inPassesUs = 0, fusedUs = 0;
  std::thread([&] { inPassesUs = prior->cost(*inPasses), fusedUs = prior->cost(*fused); }).join();
  CHECK(inPassesUs > 0);
  CHECK(inPassesUs < fusedUs / 2); // 0.320 and 2.203 ms at 32k
}

TEST_CASE("counts are those of the analysis") {
  const LoadedWorkload loaded = load(smallWorkload("causal", 1024));
  WorkCounts counts = countsOf(loaded);
  const TileWork &work = counts.tiles(128, 128);
  CHECK(work.items == 2 * 4 * 8);
  CHECK(work.visited == 2 * 4 * 36);
  CHECK(work.full == 2 * 4 * 28);
  CHECK(counts.pairs() == 8);
}

TEST_CASE("equal items fill rounds, and the last one costs a whole one") {
  const LoadedWorkload loaded = load(smallWorkload("full", 1024));
  WorkCounts counts = countsOf(loaded);
  for (bool takesStrides : {true, false}) {
    CHECK(counts.deal(dealing(128, takesStrides, 64)).imbalance == doctest::Approx(1));
    CHECK(counts.deal(dealing(128, takesStrides, 63)).imbalance == doctest::Approx(2 * 63.0 / 64));
  }
}

TEST_CASE("long items first end sooner, and parts of them sooner still") {
  const LoadedWorkload loaded = load(smallWorkload("causal", 8192));
  WorkCounts counts = countsOf(loaded);
  Dealing ascending = dealing(128, /*takesStrides=*/false, 100), descending = ascending, inParts = ascending;
  descending.isReversed = inParts.isReversed = true;
  inParts.partKeys = 1024;
  const double last = counts.deal(ascending).imbalance, first = counts.deal(descending).imbalance;
  CHECK(first < last);
  CHECK(counts.deal(descending).parts == 0);
  CHECK(counts.deal(inParts).parts > 0);
  CHECK(counts.deal(inParts).imbalance <= first);
}

TEST_CASE("what follows from tensors that are not given is not counted") {
  auto file = PatternFile::load(test::places().patterns + "/block_csr.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  attn::ProblemSizes sizes;
  sizes.heads = 1, sizes.seqlenQ = sizes.seqlenK = 1024;
  sizes.parameters.assign((*file)->pattern().getNumArguments(), 128);
  auto counts = WorkCounts::create({&(*file)->analysis()}, sizes, 1);
  REQUIRE_FALSE(counts.isOk());
  CHECK(counts.status().message() == "what the pattern keeps follows from tensors that are not given");
}
