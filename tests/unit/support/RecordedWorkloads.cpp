#include "support/Places.h"
#include "tests/unit/recorded_workloads.h"
#include "codegen/Target/FindArch.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"

#include <doctest/doctest.h>

namespace heddle::test {

const std::vector<RecordedWorkload> &recordedWorkloads() {
  static const std::vector<RecordedWorkload> list = {
      {"h200_causal_8k_d128", "causal", {}, 2, 16, 16, 8192, 128},
      {"h200_dense_8k_d64", "full", {}, 2, 32, 32, 8192, 64},
      {"h200_fkodom_32k", "dilated", {}, 1, 24, 24, 32768, 64},
      {"h200_gqa_causal_16k", "causal", {}, 1, 32, 8, 16384, 128},
      {"h200_longformer_32k", "longformer", {"half=256", "globals=64"}, 1, 16, 16, 32768, 64},
      {"h200_win1k_32k", "sliding_window", {"left=1023"}, 1, 16, 16, 32768, 128},
  };
  return list;
}

static const GpuModel &recordedGpu() {
  Result<const GpuModel *> gpu = findGpuModel("h200");
  REQUIRE(gpu.isOk());
  return **gpu;
}

LoadedWorkload load(const RecordedWorkload &workload, const std::string &skeleton) {
  LoadedWorkload loaded;
  auto file = PatternFile::load(std::string(test::places().patterns + "/") + workload.pattern + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  loaded.file = file.take();
  loaded.shape.batch = workload.batch;
  loaded.shape.heads = workload.heads;
  loaded.shape.kvHeads = workload.kvHeads;
  loaded.shape.seqlenQ = loaded.shape.seqlenK = workload.seqlen;
  auto parameters = loaded.file->bindParameters(workload.sizes);
  REQUIRE_MESSAGE(parameters.isOk(), parameters.status().message());
  loaded.shape.parameters = parameters.take();
  auto prepared = preparePattern(*loaded.file);
  REQUIRE_MESSAGE(prepared.isOk(), prepared.status().message());
  KernelShape shape;
  shape.arch = *findGpuArch(recordedGpu().arch);
  shape.headDim = shape.valueDim = workload.headDim;
  shape.queryRows = workload.seqlen;
  auto space = TuneSpace::create(prepared.take(), shape, skeleton);
  REQUIRE_MESSAGE(space.isOk(), space.status().message());
  loaded.space = space.take();
  return loaded;
}

CostTraining loadTraining(const std::string &skeleton) {
  const std::string folder = std::string(test::places().data + "/tuner/") + (skeleton == kPortable ? "portable/" : "");
  CostTraining training;
  for (const RecordedWorkload &workload : recordedWorkloads()) {
    auto table = tuner::RecordedTable::load(folder + workload.table + ".csv");
    REQUIRE_MESSAGE(table.isOk(), table.status().message());
    CHECK(table->fact("gpu") == "NVIDIA H200");
    CHECK(table->fact("problem").find("patterns/" + std::string(workload.pattern) + ".mlir ") == 0);
    CHECK(table->fact("problem").find("--seqlen=" + std::to_string(workload.seqlen)) != std::string::npos);
    LoadedWorkload loaded = load(workload, skeleton);
    Status added = training.add(table.take(), loaded.space, loaded.shape, recordedGpu());
    REQUIRE_MESSAGE(added.isOk(), added.message());
  }
  return training;
}

const std::vector<CostTraining> &trainings() {
  static const std::vector<CostTraining> all = [] {
    std::vector<CostTraining> families;
    for (const std::string &skeleton : {kHopper, kPortable})
      families.push_back(loadTraining(skeleton));
    return families;
  }();
  return all;
}

} // namespace heddle::test
