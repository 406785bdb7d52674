// Items spread over threads, and over none.
#include "runtime/Core/ParallelFor.h"
#include "without_threads.h"

#include <doctest/doctest.h>

#include <condition_variable>

using namespace heddle;
using namespace heddle::test;

static bool everyItemOnce(int workers) {
  std::vector<std::atomic<int>> times(1000);
  std::atomic<bool> isWorkerKnown{true};
  parallelFor(int64_t(times.size()), workers, [&](int worker, int64_t item) {
    ++times[size_t(item)];
    if (worker < 0 || worker >= workers)
      isWorkerKnown = false;
  });
  return isWorkerKnown &&
         std::all_of(times.begin(), times.end(), [](const std::atomic<int> &count) { return count == 1; });
}

TEST_CASE("every item is worked on once") {
  for (int workers : {1, 2, 7})
    CHECK(everyItemOnce(workers));
}

TEST_CASE("as many threads as were asked for work side by side") {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  std::atomic<bool> wereAlone{false};
  parallelFor(5, 5, [&](int, int64_t) {
    std::unique_lock<std::mutex> lock(mutex);
    ++inside;
    changed.notify_all();
    if (!changed.wait_for(lock, std::chrono::seconds(300), [&] { return inside == 5; })) // each has one item then
      wereAlone = true;
  });
  CHECK_FALSE(wereAlone);
}

TEST_CASE("what an item throws reaches the caller, on whatever thread it was") {
  for (int workers : {1, 2, 7}) {
    std::atomic<int> begun{0};
    CHECK_THROWS_AS(parallelFor(100000, workers,
                                [&](int, int64_t item) {
                                  ++begun;
                                  if (item >= 50)
                                    throw std::bad_alloc();
                                }),
                    std::bad_alloc);
    CHECK(begun < 100000);
  }
}

TEST_CASE("what the system has no threads for is done by the caller") {
  const Outcome outcome = withoutThreads([] { return everyItemOnce(4); });
  if (outcome == Outcome::skipped)
    MESSAGE("skipped: this process may not limit its threads");
  CHECK(outcome != Outcome::bad);
}
