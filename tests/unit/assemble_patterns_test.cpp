//===- assemble_patterns_test.cpp - every pattern for every GPU -----------===//
// The shipped default of every pattern file assembles for every architecture with the preferred skeleton, without
// spills and without a note of lost performance. NVRTC needs no GPU. HEDDLE_TEST_ALL=1 assembles every pair of pattern
// and target; else each pattern takes every 29th target, another one than the pattern before it.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/PreparedPattern.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

using namespace heddle;

namespace {

struct Target {
  const GpuArch *arch;
  int64_t headDim;
  int64_t valueDim;
  CallElements elements = CallElements(kDefaultDType);
};

struct Job {
  const PreparedPattern *pattern;
  Target target;
  std::string changes = {}; // of the configuration
  const char *kind = "forward";
};

constexpr size_t kSampling = 29;

std::vector<Target> targets() {
  std::vector<Target> list;
  for (const std::string &name : gpuArchNames())
    for (int64_t headDim : {64, 128})
      list.push_back({*findGpuArch(name), headDim, headDim});
  constexpr std::pair<int64_t, int64_t> kHopperDims[] = {{40, 40}, {96, 96}, {192, 192}, {192, 128}, {256, 256}};
  for (const std::string &name : gpuArchNames())
    for (auto [headDim, valueDim] : kHopperDims)
      if (sm90ForwardSkeleton().servesArch(**findGpuArch(name)))
        list.push_back({*findGpuArch(name), headDim, valueDim});
  for (const std::string &name : gpuArchNames())
    for (int64_t headDim : {64, 96, 128, 192})
      if (sm90ForwardSkeleton().servesArch(**findGpuArch(name)))
        list.push_back({*findGpuArch(name), headDim, headDim, CallElements(DType::e4m3)});
  return list;
}

std::vector<Job> jobsOf(const std::vector<PreparedPattern> &patterns) {
  const std::vector<Target> all = targets();
  const bool takesAll = std::getenv("HEDDLE_TEST_ALL") != nullptr;
  std::vector<Job> jobs;
  for (size_t p = 0; p < patterns.size(); ++p)
    for (size_t t = 0; t < all.size(); ++t)
      if (takesAll || (t + p) % kSampling == 0)
        jobs.push_back({&patterns[p], all[t]});
  return jobs;
}

std::vector<PreparedPattern> preparedPatterns(const char *kind = "forward") {
  std::vector<PreparedPattern> prepared;
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(test::places().patterns))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    auto file = PatternFile::load(path);
    REQUIRE_MESSAGE(file.isOk(), file.status().message());
    auto pattern = preparePattern(**file, PassFunctions::ofAll, Kind::parse(kind)->walk());
    REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
    prepared.push_back(pattern.take());
  }
  return prepared;
}

/// Empty, or what went wrong.
std::string assemble(const Job &job) {
  KernelShape shape;
  shape.arch = job.target.arch;
  shape.headDim = job.target.headDim;
  shape.valueDim = job.target.valueDim;
  shape.elements = job.target.elements;
  shape.kind = *Kind::parse(job.kind);
  const std::string where = job.pattern->name + " " + job.kind + " " + archName(*shape.arch) +
                            " d=" + std::to_string(shape.headDim) + "/" + std::to_string(shape.valueDim) + " " +
                            job.changes + ": ";
  auto variant = compileVariant(*job.pattern, shape, job.changes); // refuses spills and lost performance
  if (!variant)
    return where + variant.status().message();
  KernelRequest request = makeRequest(*job.pattern, shape);
  auto preferred = chooseSkeleton(request), taken = findSkeleton(summarizeConfig(variant->record.config)->skeleton);
  return *preferred == *taken ? "" : where + variant->record.note;
}

/// What went wrong with any of them.
std::vector<std::string> assembleAll(const std::vector<Job> &jobs) {
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
  return failures;
}

bool hasNvrtc() {
  const bool isThere = NvrtcLibrary::shared().isOk();
  if (!isThere)
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
  return isThere;
}

} // namespace

TEST_CASE("pattern files assemble without spills") {
  if (!hasNvrtc())
    return;
  std::vector<PreparedPattern> prepared = preparedPatterns();
  REQUIRE(prepared.size() >= 7);
  const std::vector<Job> jobs = jobsOf(prepared);
  MESSAGE(jobs.size(), " of ", prepared.size() * targets().size(), " kernels are assembled");
  for (const std::string &failure : assembleAll(jobs))
    CHECK_MESSAGE(false, failure);
}

// The anchored softmax, the default of some patterns with heads of 64, spills 8 B in passes with 256 rows to a block
// and a dynamic grid: such points are refused, as any that spill.
static const char *const kChained = "chained_mib=32";

TEST_CASE("chained passes assemble without spills for the oldest architecture and for Hopper") {
  if (!hasNvrtc())
    return;
  std::vector<PreparedPattern> prepared = preparedPatterns();
  const bool takesAll = std::getenv("HEDDLE_TEST_ALL") != nullptr;
  std::vector<Job> jobs;
  size_t chained = 0;
  for (const PreparedPattern &pattern : prepared)
    if (!pattern.passFunctions.empty())
      for (const GpuArch *arch : {&baselineGpuArch(), *findGpuArch("sm_90a")})
        for (int64_t headDim : {64, 128})
          if (chained++ % 5 == 0 || takesAll)
            jobs.push_back({&pattern,
                            {arch, headDim, headDim},
                            arch == &baselineGpuArch() ? kChained : kChained + std::string(",softmax=0")});
  CHECK(jobs.size() >= 4);
  for (const std::string &failure : assembleAll(jobs))
    CHECK_MESSAGE(false, failure);
}

TEST_CASE("gradients of floats assemble for Hopper without spills, in walks of their own, too") {
  if (!hasNvrtc())
    return;
  std::vector<PreparedPattern> prepared = preparedPatterns("backward");
  const bool takesAll = std::getenv("HEDDLE_TEST_ALL") != nullptr;
  // Ranges of many pieces, head groups, deltas of branches, rows in parts.
  const std::set<std::pair<std::string, int64_t>> hardest = {
      {"hierarchical", 64}, {"hierarchical", 128}, {"dilated_compare", 128}, {"longnet", 128}, {"longformer", 64}};
  std::vector<Job> jobs;
  for (const PreparedPattern &pattern : prepared)
    for (int64_t headDim : {64, 128})
      for (Precision precision : {Precision::exact, Precision::tf32})
        if (takesAll || (precision == Precision::exact && hardest.count({pattern.name, headDim})))
          jobs.push_back({&pattern,
                          {*findGpuArch("sm_90a"), headDim, headDim, CallElements(DType::fp32, DType::fp32, precision)},
                          "",
                          "backward"});
  CHECK(jobs.size() >= hardest.size());
  for (const std::string &failure : assembleAll(jobs))
    CHECK_MESSAGE(false, failure);
}
