//===- store_wait_test.cpp - a store that another process holds -------------===//
#include "process_fixture.h"
#include "store_fixture.h"
#include "support/StandingClock.h"

#include <sqlite3.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// A process that holds the write lock until its pipe is closed.
class Holder {
public:
  explicit Holder(const std::string &path) {
    int held[2], end[2];
    REQUIRE((pipe(held) == 0 && pipe(end) == 0));
    child = startChild([&] {
      close(end[1]);
      sqlite3 *handle = nullptr;
      char byte = 0;
      const bool isHeld = sqlite3_open(path.c_str(), &handle) == SQLITE_OK &&
                          sqlite3_exec(handle, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr) == SQLITE_OK;
      return isHeld && write(held[1], "", 1) == 1 && read(end[0], &byte, 1) == 0 ? 0 : 1;
    });
    close(end[0]), close(held[1]);
    last = end[1];
    char byte = 0;
    REQUIRE(read(held[0], &byte, 1) == 1);
    close(held[0]);
  }
  ~Holder() {
    close(last);
    waitFor(child);
  }
  pid_t child = 0;

private:
  int last = -1;
};

// Of the clock that sleeping moves.
std::chrono::milliseconds waitedIn(const std::function<void()> &work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

} // namespace

TEST_CASE("[2] a wait is told once after a second, is bounded, and its end names who holds the lock and what to do") {
  for (bool hasLog : {true, false}) {
    CAPTURE(hasLog);
    ScratchFolder folder;
    const std::string path = folder / "a.db";
    StoreOptions options = writing();
    options.busyTimeoutMs = 1500;
    std::vector<StoreWait> waits;
    options.onWait = [&](const StoreWait &wait) { waits.push_back(wait); };
    {
      Store store = openStore(path, options);
      if (!hasLog)
        REQUIRE(store.finalise().isOk());
    }
    Holder holder(path);
    const std::string expected = "process " + std::to_string(holder.child);
    Status refused;
    const std::chrono::milliseconds waited = waitedIn([&] {
      Result<Store> store = Store::open(path, options);
      refused = store ? store->setName({"causal", "pattern-a", "", 0}) : store.status();
    });
    CHECK(refused.code() == StatusCode::io);
    CHECK_MESSAGE(refused.message().find("another process holds the file: " + expected) != std::string::npos,
                  refused.message());
    CHECK_MESSAGE(refused.message().find("s for its lock: try again when that has ended, or end it") !=
                      std::string::npos,
                  refused.message());
    CHECK(waited.count() >= 1500);
    CHECK(waited.count() < 10000);
    REQUIRE(waits.size() == 1);
    CHECK(waits[0].path == path);
    CHECK(waits[0].holder.rfind(expected, 0) == 0);
    CHECK(waits[0].limitMs == 1500);
  }
}
