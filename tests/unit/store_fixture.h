// Rows that the store tests share: valid to publish, they differ in whatever the caller changes.
#ifndef HEDDLE_TESTS_UNIT_STORE_FIXTURE_H
#define HEDDLE_TESTS_UNIT_STORE_FIXTURE_H

#include "runtime/Core/Digest.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/Store.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <cmath>

namespace heddle::test {

inline StoreOptions writing() {
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  options.busyTimeoutMs = 600000; // a crowd of processes may be slow; only a hang is this slow
  return options;
}

inline Store openStore(const std::string &path, const StoreOptions &options) {
  Result<Store> store = Store::open(path, options);
  REQUIRE_MESSAGE(store.isOk(), store.status().str());
  return store.take();
}

inline KernelFamily someFamily(const std::string &pattern = "pattern-a") {
  KernelFamily family;
  family.pattern = pattern;
  family.headDim = family.valueDim = 64;
  family.generator = "g1";
  return family;
}

inline LinkRecord someLinks() {
  LinkRecord links;
  links.deviceName = "Some GPU", links.ranks = 2, links.hosts = 1;
  links.gbps = 311, links.latencyUs = 12.5;
  links.messages = "1048576:15.9", links.nccl = "2.28.9";
  links.createdUnix = 100;
  return links;
}
inline DeviceIdentity someDevice() { return {"Some GPU", "sm_90", 132, 140}; }

inline KernelRecord someKernel(const std::string &content, const std::string &pattern = "pattern-a",
                               size_t cubinBytes = 2000) {
  KernelRecord record;
  static_cast<KernelFamily &>(record) = someFamily(pattern);
  record.contentKey = content;
  record.kernelArch = "sm_90";
  record.config = "block_m=128\nblock_n=64\n";
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.appendPointer(Role::q);
  record.plan = plan.str();
  record.cubin = std::string("\x7f"
                             "ELF\0bytes",
                             10) +
                 std::string(cubinBytes, content.empty() ? 'x' : content.back());
  record.ptx = "// ptx of " + content;
  record.registers = 168;
  record.compileLog = "two\nlines \\ and a backslash";
  record.nvrtcVersion = "13.0";
  return record;
}

inline Winner someWinner(const KernelRecord &record, ProblemBucket bucket = {3, 2, 1},
                         DeviceIdentity device = someDevice()) {
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, bucket, std::move(device));
  winner.contentKey = record.contentKey;
  winner.isTuned = 1;
  winner.medianUs = 12.5;
  winner.driverVersion = 13000;
  return winner;
}

inline Trial someTrial(const std::string &config, double medianUs = 10) {
  Trial trial;
  static_cast<WinnerKey &>(trial) = WinnerKey(someFamily(), {3, 2, 1}, someDevice());
  trial.config = config;
  trial.configDigest = sha256Hex(config);
  trial.outcome = "measured";
  trial.medianUs = medianUs;
  return trial;
}

} // namespace heddle::test

#endif
