//===- store_full_disk_test.cpp - a file system that is full ----------------===//
// On a small tmpfs of its own. Where this process may not mount one, the test says so and does nothing (a limit of file
// size, which needs no right, is in store_files_test). Numbers in brackets are the promises of runtime/Store/Store.h.
#include "process_fixture.h"
#include "store_contents.h"

#include <sched.h>
#include <sys/mount.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int kMayNotMount = 77;

// Runs `work` where `folder` is a file system of one MiB that nobody else sees.
int onSmallDisk(const std::string &folder, const std::function<int()> &work) {
  return waitFor(startChild([&] {
    bool isMounted = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m,mode=0700") == 0;
    return isMounted ? work() : kMayNotMount;
  }));
}

// Publishes until the disk is full; the number of kernels that went in, or -1 for another failure.
int fill(Store &store, int first) {
  for (int i = first; i < first + 1000; ++i) {
    KernelRecord record = someKernel("k" + std::to_string(i), "pattern-a", 20000);
    Status status = store.publish(record, someWinner(record, {i, 0, 1}));
    bool isFull = status.code() == StatusCode::io && status.message().find("free some disk space") != std::string::npos;
    if (!status.isOk()) {
      if (!isFull)
        std::fprintf(stderr, "%s\n", status.str().c_str());
      return isFull ? i - first : -1;
    }
  }
  return -1;
}

bool isSound(const std::string &path, int64_t kernels) {
  Result<Store> store = Store::open(path, writing());
  Result<VerifyReport> report = store ? store->verify() : Result<VerifyReport>(store.status());
  bool isRight =
      report && report->problems.empty() && report->counts.kernels == kernels && report->counts.winners == kernels;
  if (!isRight)
    std::fprintf(stderr, "%s: %s, %lld kernels\n", path.c_str(), report.status().str().c_str(),
                 report ? (long long)report->counts.kernels : -1);
  return isRight;
}

int tellOf(const Status &status, int code) {
  std::fprintf(stderr, "%s\n", status.str().c_str());
  return code;
}

int work(const ScratchFolder &folder, const std::string &disk) {
  std::string path = disk + "/a.db", filler = disk + "/filler";
  writeFile(filler, std::string(300000, 'x'));
  int count = 0;
  {
    Result<Store> store = Store::open(path, writing());
    if (!store)
      return 1;
    count = fill(*store, 0);
    if (count < 2)
      return 2;
    Status merge = store->merge({folder / "shard"}).status();
    if (merge.code() != StatusCode::io || merge.message().find("free some disk space") == std::string::npos)
      return tellOf(merge, 3);
  }
  if (!isSound(path, count))
    return 4;
  Status exported = openStore(folder / "shard", {}).exportTo(disk + "/out.db", {}).status();
  if (exported.code() != StatusCode::io)
    return tellOf(exported, 5);
  for (const auto &entry : std::filesystem::directory_iterator(disk))
    if (entry.path().filename().string().find("out.db") == 0)
      return 6;
  std::filesystem::remove(filler); // the work goes on
  Result<Store> store = Store::open(path, writing());
  int more = store ? fill(*store, count) : -1;
  return more >= 1 && isSound(path, count + more) ? 0 : 7;
}

} // namespace

TEST_CASE("[1] a full disk: nothing is lost, nothing is half there, and more room lets the work go on") {
  ScratchFolder folder;
  std::filesystem::create_directory(folder / "disk");
  {
    Store shard = openStore(folder / "shard", writing());
    for (int i = 0; i < 40; ++i) {
      KernelRecord record = someKernel("s" + std::to_string(i), "pattern-a", 30000);
      require(shard.publish(record, someWinner(record, {1000 + i, 0, 1})));
    }
    require(shard.finalise());
  }
  int code = onSmallDisk(folder / "disk", [&] { return work(folder, folder / "disk"); });
  if (code == kMayNotMount)
    MESSAGE("skipped: this process may not mount a tmpfs");
  else
    CHECK(code == 0);
}
