//===- assemble_patterns_test.cpp - every pattern for every GPU -----------===//
// The shipped default of every pattern file assembles for every architecture with the preferred skeleton, without
// spills and without a note of lost performance. NVRTC needs no GPU.
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Registry.h"
#include "codegen/Target/GpuArch.h"
#include "compiler/Driver/CompileSession.h"
#include "compiler/Driver/PatternFile.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

using namespace heddle;

namespace {

struct Job {
  const PreparedPattern *pattern;
  const GpuArch *arch;
  int64_t headDim;
};

std::vector<PreparedPattern> preparedPatterns() {
  std::vector<PreparedPattern> prepared;
  for (const auto &entry : std::filesystem::directory_iterator(HEDDLE_PATTERNS)) {
    auto file = PatternFile::load(entry.path().string());
    REQUIRE_MESSAGE(file.isOk(), file.status().message());
    auto pattern = preparePattern(**file);
    REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
    prepared.push_back(pattern.take());
  }
  return prepared;
}

/// Empty, or what went wrong.
std::string assemble(const Job &job) {
  KernelShape shape;
  shape.arch = job.arch;
  shape.headDim = shape.valueDim = job.headDim;
  const std::string where =
      job.pattern->name + " " + std::string(job.arch->name) + " d=" + std::to_string(job.headDim) + ": ";
  auto variant = compileVariant(*job.pattern, shape, ""); // refuses spills and lost performance
  if (!variant)
    return where + variant.status().message();
  KernelRequest request = makeRequest(*job.pattern, shape);
  auto preferred = chooseSkeleton(request), taken = findSkeleton(KernelConfig::parse(variant->record.config)->skeleton);
  return *preferred == *taken ? "" : where + variant->record.note;
}

} // namespace

TEST_CASE("every pattern file assembles for every architecture without spills") {
  if (!NvrtcLibrary::shared()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  std::vector<PreparedPattern> prepared = preparedPatterns();
  REQUIRE(prepared.size() >= 7);
  std::vector<Job> jobs;
  for (const PreparedPattern &pattern : prepared)
    for (const GpuArch &arch : gpuArchs())
      for (int64_t headDim : {64, 128})
        jobs.push_back({&pattern, &arch, headDim});
  for (const PreparedPattern &pattern : prepared)
    for (const GpuArch &arch : gpuArchs())
      for (int64_t headDim : {40, 192, 256})
        if (sm90ForwardSkeleton().servesArch(arch))
          jobs.push_back({&pattern, &arch, headDim});
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::vector<std::string> failures;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      if (std::string failure = assemble(jobs[i]); !failure.empty()) {
        std::lock_guard<std::mutex> lock(mutex);
        failures.push_back(failure);
      }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
  for (const std::string &failure : failures)
    CHECK_MESSAGE(false, failure);
}
