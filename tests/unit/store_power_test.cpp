//===- store_power_test.cpp - what a loss of power may not take away --------===//
// Numbers in brackets are the promises of runtime/Store/Store.h. The calls with which SQLite waits for the disk go
// through here.
#include "store_fixture.h"

#include <atomic>
#include <functional>
#include <sys/syscall.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {
std::atomic<int> syncs{0};
} // namespace

extern "C" int fdatasync(int descriptor) {
  ++syncs;
  return int(syscall(SYS_fdatasync, descriptor));
}

extern "C" int fsync(int descriptor) {
  ++syncs;
  return int(syscall(SYS_fsync, descriptor));
}

namespace {

// How often the disk was waited for until `write` returned.
int syncsOf(const std::function<Status()> &write) {
  const int before = syncs;
  const Status status = write();
  REQUIRE_MESSAGE(status.isOk(), status.message());
  return syncs - before;
}

Status publishOne(Store &store, const std::string &key, int64_t bucket) {
  const KernelRecord record = someKernel(key);
  return store.publish(record, someWinner(record, {bucket, 1, 1}));
}

Status nameOne(Store &store, const std::string &name) {
  NameRecord record;
  record.name = name;
  record.pattern = "pattern-a";
  return store.setName(record);
}

} // namespace

TEST_CASE("[9] kernels, winners, names and merges are on the disk when they are reported, trials need not be") {
  ScratchFolder folder;
  {
    Store other = openStore(folder / "other.db", writing());
    REQUIRE(publishOne(other, "k9", 9).isOk());
  }
  Store store = openStore(folder / "a.db", writing());
  const Store reader = openStore(folder / "a.db", {}); // whose being there keeps the log
  for (int round = 0; round < 3; ++round) {            // the first rows of a log are synced in any case
    CAPTURE(round);
    CHECK(syncsOf([&] { return publishOne(store, "k" + std::to_string(round), round); }) >= 1);
    CHECK(syncsOf([&] { return store.recordTrial(someTrial("x=" + std::to_string(round))); }) == 0);
    DeviceRecord device;
    static_cast<DeviceIdentity &>(device) = someDevice();
    CHECK(syncsOf([&] { return store.recordDevice(device); }) == 0);
    CHECK(syncsOf([&] { return nameOne(store, "n" + std::to_string(round)); }) >= 1);
  }
  REQUIRE(store.recordTrial(someTrial("y=1")).isOk());
  CHECK(syncsOf([&] { return store.merge({folder / "other.db"}).status(); }) >= 1);
}

TEST_CASE("[9] without a log, every row is on the disk when it is reported") {
  ScratchFolder folder;
  StoreOptions forced = writing();
  forced.fileSystemType = 0x6969; // NFS
  forced.forceNetwork = true;
  Store store = openStore(folder / "a.db", forced);
  CHECK(syncsOf([&] { return publishOne(store, "k1", 1); }) >= 1);
  CHECK(syncsOf([&] { return store.recordTrial(someTrial("x=1")); }) >= 1);
}
