#include "support/Places.h"
#include "tests/unit/recorded_database.h"
#include "codegen/Config/KernelConfig.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/ProblemKey.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/Store.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace heddle::test {
namespace {

constexpr int64_t kRecordedUnix = 1795319483; // 2026-11-22 03:51:23 UTC
const DeviceIdentity kFirstGpu{"NVIDIA H200", "sm_90", 132, 141}, kSecondGpu{"NVIDIA H100 80GB HBM3", "sm_90", 132, 80};

void require(const Status &status) { REQUIRE_MESSAGE(status.isOk(), status.message()); }

/// Between 1.05 and 1.35, the same for the same configuration.
double secondGpuFactor(const std::string &config) {
  const std::string digest = sha256Hex(config).substr(0, 4);
  return 1.05 + 0.3 * double(std::stoul(digest, nullptr, 16)) / 65536;
}

KernelRecord kernelOf(const KernelFamily &family, const std::string &config, const std::string &arch) {
  KernelRecord record;
  static_cast<KernelFamily &>(record) = family;
  record.config = config;
  record.contentKey = sha256Hex(arch + family.pattern + family.generator + config);
  record.kernelArch = arch;
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.appendPointer(Role::q);
  record.plan = plan.str();
  record.cubin = "no code";
  record.registers = 168;
  record.sharedBytes = 196608;
  record.nvrtcVersion = "13.0";
  return record;
}

Winner winnerOf(const WinnerKey &key, const KernelRecord &kernel, double us) {
  Winner winner;
  static_cast<WinnerKey &>(winner) = key;
  winner.contentKey = kernel.contentKey;
  winner.isTuned = us > 0;
  winner.medianUs = us;
  winner.driverVersion = 13000;
  winner.createdUnix = kRecordedUnix + 60;
  return winner;
}

Trial trialOf(const WinnerKey &key, const tuner::PointTrial &row, double us, int64_t order) {
  Trial trial;
  static_cast<WinnerKey &>(trial) = key;
  trial.config = row.config;
  trial.configDigest = sha256Hex(row.config);
  trial.outcome = tuner::outcomeName(row.outcome);
  trial.medianUs = row.outcome == tuner::Outcome::measured ? us : 0;
  trial.minUs = us;
  trial.maxError = row.maxError;
  trial.message = row.message;
  trial.registers = row.registers;
  trial.spillBytes = row.spillBytes;
  trial.compileSeconds = row.compileSeconds;
  trial.driverVersion = 13000;
  trial.createdUnix = kRecordedUnix + order / 10;
  return trial;
}

void addWorkload(Store &store, const RecordedWorkload &recorded, const DeviceIdentity &device, double slowdown,
                 const RecordedDatabase &what) {
  auto table = tuner::RecordedTable::load(std::string(test::places().data + "/tuner/") + recorded.table + ".csv");
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  const LoadedWorkload loaded = load(recorded);
  KernelFamily family = familyOf(loaded.space->pattern(), loaded.space->request());
  if (!what.generator.empty())
    family.generator = what.generator;
  const WinnerKey key = winnerKey(*loaded.file, loaded.shape, family, device);
  const bool isSecond = device.deviceName == kSecondGpu.deviceName;
  const tuner::PointTrial *best = nullptr;
  double bestUs = 0;
  int64_t order = 0;
  for (const tuner::PointTrial &row : table->trials()) {
    const double us = row.medianUs * slowdown * (isSecond ? secondGpuFactor(row.config) : 1);
    require(store.recordTrial(trialOf(key, row, us, order++)));
    if (row.outcome == tuner::Outcome::measured && (!best || us < bestUs))
      best = &row, bestUs = us;
  }
  auto point = loaded.space->space().parse(best->config);
  REQUIRE_MESSAGE(point.isOk(), point.status().message());
  const KernelRecord kernel = kernelOf(family, loaded.space->configAt(*point).str(), "sm_90a");
  require(store.publish(kernel, winnerOf(key, kernel, bestUs)));
  if (what.hasNames)
    require(store.setName({loaded.space->pattern().name, family.pattern, "", kRecordedUnix}));
}

void addHostile(Store &store) {
  KernelFamily family;
  family.pattern = sha256Hex("hostile");
  family.headDim = family.valueDim = 64;
  family.generator = kHostile;
  DeviceIdentity device = kFirstGpu;
  device.deviceName = kHostile;
  const WinnerKey key(family, {3, 5, 1, 9}, device, {1, 8, 8, 1024, 1024});
  KernelRecord kernel = kernelOf(family, std::string("block_m=128\nname=") + kHostile + "\n", "sm_90a");
  kernel.nvrtcVersion = kHostile;
  require(store.publish(kernel, winnerOf(key, kernel, 100)));
  tuner::PointTrial row;
  row.config = std::string("block_m=128 name=") + kHostile;
  row.outcome = tuner::Outcome::launchFailed;
  row.message = kHostile;
  require(store.recordTrial(trialOf(key, row, 0, 0)));
  row.config = "block_m=64 name=<b>";
  row.outcome = tuner::Outcome::measured;
  require(store.recordTrial(trialOf(key, row, 120, 1)));
  require(store.setName({kHostile, family.pattern, kHostile, kRecordedUnix}));
}

} // namespace

void makeRecordedDatabase(const std::string &path, const RecordedDatabase &what) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  StoreOptions writing;
  writing.mode = StoreMode::readWrite;
  auto store = Store::open(path, writing);
  REQUIRE_MESSAGE(store.isOk(), store.status().message());
  for (size_t i = 0; i < what.workloads; ++i) {
    const double slowdown = i == 0 ? what.slowdown : 1;
    addWorkload(*store, recordedWorkloads()[i], kFirstGpu, slowdown, what);
    if (what.hasSecondGpu)
      addWorkload(*store, recordedWorkloads()[i], kSecondGpu, slowdown, what);
  }
  if (what.hasHostile)
    addHostile(*store);
  require(store->finalise());
}

std::vector<std::string> recordedProblems(const std::string &patterns) {
  std::vector<std::string> problems;
  for (const RecordedWorkload &workload : recordedWorkloads()) {
    std::string text = patterns + "/" + workload.pattern + ".mlir --batch=" + std::to_string(workload.batch) +
                       " --heads=" + std::to_string(workload.heads) + " --seqlen=" + std::to_string(workload.seqlen) +
                       " --head-dim=" + std::to_string(workload.headDim);
    if (workload.kvHeads != workload.heads)
      text += " --kv-heads=" + std::to_string(workload.kvHeads);
    for (const std::string &size : workload.sizes)
      text += " --set=" + size;
    problems.push_back(text);
  }
  return problems;
}

} // namespace heddle::test
