//===- store_export_test.cpp - exports to one name at once ------------------===//
// The calls that give a file its name go through here, so that file systems can be played which lack some.
#include "store_fixture.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

bool hasNoReplace = true, hasLinks = true;
std::atomic<int> absent{0}; // who still has to come before anybody gives a file its name

void awaitOthers() {
  for (--absent; absent > 0;)
    std::this_thread::yield();
}

} // namespace

extern "C" int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) noexcept {
  awaitOthers();
  if (hasNoReplace)
    return int(syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
  errno = EINVAL;
  return -1;
}

extern "C" int link(const char *from, const char *to) noexcept {
  if (hasLinks)
    return int(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
  errno = EPERM;
  return -1;
}

namespace {

std::string makeStore(const std::string &path) {
  Store store = openStore(path, writing());
  const KernelRecord record = someKernel("k1");
  REQUIRE(store.publish(record, someWinner(record)).isOk());
  REQUIRE(store.finalise().isOk());
  return path;
}

// What each of two exports to one name says; neither finds what the other made when it begins.
std::vector<Status> exportTwice(const std::string &from, const std::string &to) {
  absent = 2;
  std::vector<Status> said(2);
  std::vector<std::thread> threads;
  for (Status &status : said)
    threads.emplace_back([&from, &to, &status] {
      const Result<Store> store = Store::open(from);
      status = store ? store->exportTo(to, {}).status() : store.status();
    });
  for (std::thread &thread : threads)
    thread.join();
  return said;
}

} // namespace

TEST_CASE("of two exports to one name at once one wins, and the other says so") {
  ScratchFolder folder;
  std::filesystem::create_directory(folder / "out");
  const std::string from = makeStore(folder / "from.db"), to = folder / "out/to.db";
  for (int round = 0; round < 4; ++round) {
    CAPTURE(round);
    hasNoReplace = round % 2 == 0;
    const std::vector<Status> said = exportTwice(from, to);
    CHECK(int(said[0].isOk()) + int(said[1].isOk()) == 1);
    const Status &other = said[0].isOk() ? said[1] : said[0];
    CHECK(other.code() == StatusCode::invalidArgument);
    CHECK(other.message() == "export to '" + to + "': another process made that file meanwhile; it stays as it is");
    CHECK(openStore(to, {}).counts()->kernels == 1);
    for (const auto &file : std::filesystem::directory_iterator(folder / "out"))
      CHECK(file.path() == to);
    std::filesystem::remove(to);
  }
  hasNoReplace = true;
}

TEST_CASE("an export takes its name where a file system renames without conditions and knows no links") {
  ScratchFolder folder;
  Store store = openStore(makeStore(folder / "from.db"), {});
  hasNoReplace = hasLinks = false;
  CHECK(store.exportTo(folder / "to.db", {}).isOk());
  hasNoReplace = hasLinks = true;
  CHECK(openStore(folder / "to.db", {}).verify()->problems.empty());
}
