// The GPU rows: that they are complete and consistent, and that lookups say what exists.
#include "codegen/Target/GpuArch.h"
#include "codegen/Target/GpuModel.h"

#include <cmath>
#include <doctest/doctest.h>
#include <set>

using namespace heddle;

TEST_CASE("rows are consistent with each other") {
  std::set<std::string_view> names;
  int previous = 0;
  for (const GpuArch &arch : gpuArchs()) {
    CAPTURE(arch.name);
    CHECK(names.insert(arch.name).second);
    CHECK(10 * arch.major + arch.minor >= previous);
    previous = 10 * arch.major + arch.minor;
    CHECK(arch.name.find(std::to_string(previous)) != std::string_view::npos);
    CHECK(arch.smemPerBlockBytes + arch.smemReservedBytes <= arch.smemPerSmBytes);
    CHECK(arch.maxThreadsPerBlock <= arch.maxThreadsPerSm);
    const auto model = findGpuModel(arch.name);
    REQUIRE(model.isOk());
    const auto modelArch = findGpuArch((*model)->arch);
    REQUIRE(modelArch.isOk());
    CHECK(arch.runsOn((*modelArch)->major, (*modelArch)->minor));
  }
  CHECK(baselineGpuArch().name == gpuArchs().front().name);
}

TEST_CASE("a model's matrix rate is a plausible number of operations per clock and SM") {
  for (const GpuModel &model : gpuModels()) {
    CAPTURE(model.name);
    const double perClock = model.bf16Tflops * 1e12 / (model.smCount * model.clockMhz * 1e6);
    const double power = std::log2(perClock);
    CHECK(std::abs(power - std::round(power)) < 0.03);
    CHECK(perClock > 500);
    CHECK((model.fp8Tflops == 0 || model.fp8Tflops == doctest::Approx(2 * model.bf16Tflops)));
    CHECK((model.fp8Tflops > 0) == (*findGpuArch(model.arch))->features.hasFp8Mma);
    CHECK(model.bandwidthGBps >= 600);
    CHECK(model.l2Bytes >= 6 * 1024 * 1024);
    CHECK(findGpuArch(model.arch).isOk());
  }
}

TEST_CASE("models are found by short name, by the driver's name and by architecture") {
  for (const char *name : {"h200", "H200", "NVIDIA H200", "nvidia h200"}) {
    const auto model = findGpuModel(name);
    REQUIRE(model.isOk());
    CHECK((*model)->name == "h200");
  }
  const auto byDriverName = findGpuModel("NVIDIA GeForce RTX 4090");
  REQUIRE(byDriverName.isOk());
  CHECK((*byDriverName)->name == "rtx4090");
  const auto byArch = findGpuModel("sm_80");
  REQUIRE(byArch.isOk());
  CHECK((*byArch)->name == "a100");
}

TEST_CASE("an unknown name is refused with the names that exist") {
  const auto arch = findGpuArch("sm_75");
  REQUIRE_FALSE(arch.isOk());
  CHECK(arch.status().code() == StatusCode::notFound);
  CHECK(arch.status().message() ==
        "no GPU architecture 'sm_75'; there is sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_103, sm_120");
  CHECK_FALSE(findGpuArch("").isOk());
  const auto model = findGpuModel("v100");
  REQUIRE_FALSE(model.isOk());
  CHECK(model.status().code() == StatusCode::notFound);
  for (const GpuModel &row : gpuModels())
    CHECK(model.status().message().find(row.name) != std::string::npos);
}

TEST_CASE("a compute capability gets the most specific row that runs on it") {
  const std::pair<std::pair<int, int>, const char *> served[] = {
      {{8, 0}, "sm_80"}, {{8, 6}, "sm_86"},   {{8, 7}, "sm_86"},   {{8, 9}, "sm_89"},   {{9, 0}, "sm_90a"},
      {{9, 1}, "sm_90"}, {{10, 0}, "sm_100"}, {{10, 3}, "sm_103"}, {{12, 0}, "sm_120"}, {{12, 1}, "sm_120"},
  };
  for (const auto &[capability, name] : served) {
    const auto arch = findGpuArchFor(capability.first, capability.second);
    REQUIRE(arch.isOk());
    CHECK((*arch)->name == name);
  }
  CHECK(findGpuArchFor(7, 5).status().code() == StatusCode::notFound);
  CHECK(findGpuArchFor(11, 0).status().code() == StatusCode::notFound);
  CHECK_FALSE((*findGpuArch("sm_90a"))->runsOn(9, 1));
  CHECK((*findGpuArch("sm_80"))->runsOn(8, 9));
  CHECK_FALSE((*findGpuArch("sm_86"))->runsOn(8, 0));
}
