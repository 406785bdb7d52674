// Preparation in worker threads: overlap, bounds, hangs. Promises [3] and [6] of TuningSession.h.
#include "tests/unit/process_fixture.h"
#include "tests/unit/tuner_fixture.h"
#include "tests/unit/without_threads.h"

#include "tuner/Search/PreparePool.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

using namespace heddle;
using namespace heddle::tuner;

namespace {

constexpr auto kHangSeconds = std::chrono::seconds(300); // only what never comes takes so long

} // namespace

TEST_CASE("compilations that hang are timed-out trials and cost only their threads") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  auto clock = std::make_shared<ManualClock>();
  fixture.task.clock = clock;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.2;
  auto evaluator = wrap(fixture);
  struct Scene {
    std::mutex mutex;
    std::condition_variable changed;
    int hanging = 0;
    bool isReleased = false, wasTold = false;
  };
  auto scene = std::make_shared<Scene>(); // which threads that were given up outlive the test with
  auto recorded = fixture.evaluator;
  evaluator->onPrepare = [scene, clock, recorded](const Point &point, const std::atomic<bool> &stop) {
    const bool obeys = point.index[0] == 2, ignores = point.index[0] == 5;
    if (!obeys && !ignores)
      return recorded->prepare(point, stop);
    std::unique_lock<std::mutex> lock(scene->mutex);
    if (++scene->hanging == 2) // both workers hang, so that nothing else runs while time passes
      clock->advance(1);
    while (!(obeys && stop) && !scene->isReleased)
      scene->changed.wait_for(lock, std::chrono::milliseconds(2));
    scene->wasTold |= obeys && stop;
    scene->changed.notify_all();
    return Preparation();
  };
  const TuningResult result = fixture.run();
  {
    std::unique_lock<std::mutex> lock(scene->mutex);
    CHECK(scene->changed.wait_for(lock, kHangSeconds, [&] { return scene->wasTold; }));
    scene->isReleased = true;
  }
  CHECK(count(result, Outcome::timedOut) == 2);
  CHECK(result.measuredNow == 8);
  CHECK(result.winner->config == "a=0");
  for (const PointTrial &trial : fixture.sink.trials())
    if (trial.outcome == Outcome::timedOut)
      CHECK(trial.message == "compilation took 1.00 s, the limit is 0.20 s");
}

TEST_CASE("a search that gets no threads does their work itself") {
  const RecordedTable table = countedTable(8);
  const auto outcome = test::withoutThreads([&] {
    Fixture fixture(table);
    fixture.options.workers = 2;
    return fixture.run().measuredNow == 8;
  });
  if (outcome == test::Outcome::skipped)
    MESSAGE("skipped: this process may not limit its threads");
  CHECK(outcome != test::Outcome::bad);
}

TEST_CASE("a session that ends waits for the compilations that it began, however long they take") {
  const RecordedTable table = countedTable(4);
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false, sawTheEnd = false;
  int inside = 0;
  {
    Fixture fixture(table);
    auto evaluator = wrap(fixture);
    evaluator->onPrepare = [&](const Point &, const std::atomic<bool> &) {
      std::unique_lock<std::mutex> lock(mutex);
      ++inside;
      changed.notify_all();
      sawTheEnd |= changed.wait_for(lock, std::chrono::milliseconds(2500), [&] { return isOver; });
      --inside;
      return Preparation();
    };
    PreparePool pool(evaluator, std::make_shared<ManualClock>(), 2, 60);
    pool.submit(table.trials()[0].point);
    pool.submit(table.trials()[1].point);
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return inside == 2; });
  }
  std::lock_guard<std::mutex> lock(mutex);
  isOver = true;
  CHECK(inside == 0);
  CHECK_FALSE(sawTheEnd);
}

namespace {

// Of the process that makes it: ends it with 99 where a compilation still runs when statics are destroyed.
struct Used {
  std::atomic<bool> isUsed{false};
  ~Used() {
    if (isUsed)
      _exit(99);
  }
};

// A process that gives up two compilations and ends; the second one does not stop when it is told to.
int endBesideCompilations(bool isHanging) {
  static Used used;
  auto clock = std::make_shared<ManualClock>();
  const RecordedTable table = countedTable(2);
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  std::atomic<int> inside{0};
  evaluator->onPrepare = [&inside, isHanging](const Point &point, const std::atomic<bool> &stop) {
    used.isUsed = true;
    ++inside;
    while (!stop || (isHanging && point.index[0] == 1))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    used.isUsed = isHanging;
    return Preparation();
  };
  PreparePool pool(evaluator, clock, 2, 60);
  pool.submit(table.trials()[0].point);
  pool.submit(table.trials()[1].point);
  while (inside < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  clock->advance(61);
  const auto never = [] { return false; };
  const bool areLate = pool.next(never)->preparation.failure && pool.next(never)->preparation.failure;
  return areLate && pool.abandoned() == 2 ? 7 : 1;
}

} // namespace

TEST_CASE("a compilation that was given up does not meet the end of what it uses, and the exit code stays") {
  for (const bool isHanging : {false, true})
    CHECK(test::waitFor(test::startChild([&]() -> int {
            std::exit(endBesideCompilations(isHanging)); // runs destructors, as a program does
          })) == 7);
}

TEST_CASE("too many compilations that hang end the session") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  auto clock = std::make_shared<ManualClock>();
  fixture.task.clock = clock;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.05;
  fixture.options.maxAbandoned = 3;
  auto evaluator = wrap(fixture);
  evaluator->onPrepare = [clock](const Point &, const std::atomic<bool> &stop) {
    clock->advance(1);
    while (!stop)
      std::this_thread::yield();
    return Preparation();
  };
  const Status status = fixture.failure();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message().find("4 compilations") != std::string::npos);
}

TEST_CASE("a compilation on the session's own thread that took too long is refused afterwards") {
  const RecordedTable table = countedTable(2);
  Fixture fixture(table);
  fixture.options.prepareLimitSeconds = 0.4;
  const TuningResult result = fixture.run();
  CHECK(count(result, Outcome::timedOut) == 2);
  CHECK(fixture.sink.trials()[0].message == "compilation took 0.50 s, the limit is 0.40 s");
}

TEST_CASE("compilations overlap, as many as there are workers and never more") {
  const RecordedTable table = countedTable(12);
  for (int workers : {1, 3}) {
    Fixture fixture(table);
    fixture.options.workers = workers;
    fixture.options.ahead = 6;
    auto evaluator = wrap(fixture);
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0, most = 0;
    std::set<std::thread::id> threads;
    evaluator->onPrepare = [&](const Point &point, const std::atomic<bool> &stop) {
      std::unique_lock<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
      most = std::max(most, ++inside);
      changed.notify_all();
      // Waits for company the first time round; gives up so that a failure fails instead of hanging.
      changed.wait_for(lock, kHangSeconds, [&] { return most >= workers; });
      --inside;
      lock.unlock();
      return fixture.evaluator->prepare(point, stop);
    };
    const TuningResult result = fixture.run();
    CHECK(result.measuredNow == 12);
    CHECK(most == workers);
    CHECK(threads.size() <= size_t(workers));
    CHECK(threads.count(std::this_thread::get_id()) == 0);
  }
}

TEST_CASE("compilation runs ahead while a point is measured") {
  const RecordedTable table = countedTable(4);
  Fixture fixture(table);
  fixture.options.workers = 1;
  auto evaluator = wrap(fixture);
  std::mutex mutex;
  std::condition_variable changed;
  size_t prepared = 0;
  bool hasRunAhead = false;
  evaluator->onPrepare = [&](const Point &point, const std::atomic<bool> &stop) {
    Preparation result = fixture.evaluator->prepare(point, stop);
    std::lock_guard<std::mutex> lock(mutex);
    ++prepared;
    changed.notify_all();
    return result;
  };
  evaluator->onVerify = [&](Candidate &candidate) {
    std::unique_lock<std::mutex> lock(mutex);
    const size_t recorded = fixture.sink.trials().size();
    hasRunAhead |= recorded == 0 && changed.wait_for(lock, kHangSeconds, [&] { return prepared >= 3; });
    return fixture.evaluator->verify(candidate);
  };
  fixture.run();
  CHECK(hasRunAhead);
}

TEST_CASE("[6] the winner does not depend on the number of workers") {
  const RecordedTable table = modelTable(5);
  for (int workers : {0, 1, 2, 4}) {
    Fixture fixture(table);
    fixture.options.workers = workers;
    CHECK(fixture.run().winner->config == table.best()->config);
  }
}

TEST_CASE("what is given is measured while the space is walked") {
  const RecordedTable table = countedTable(50);
  std::atomic<int> verified{0};
  // Walking the space ends only after the first launch; the point that is given must pass the constraint at once.
  const std::thread::id caller = std::this_thread::get_id();
  Constraint slow{"slow", [&](const PointValues &) -> std::optional<std::string> {
                    while (std::this_thread::get_id() != caller && verified == 0)
                      std::this_thread::yield();
                    return std::nullopt;
                  }};
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 50; ++i)
    values.push_back(i);
  const SearchSpace space = spaceOf("slow", {numbersKnob("a", values, "")}, {slow}).take();
  Fixture fixture(table);
  fixture.task.space = &space;
  auto wrapped =
      std::make_shared<Wrapped>(std::make_shared<RecordedEvaluator>(table, space, RecordedEvaluator::Options{}));
  wrapped->onVerify = [&](Candidate &candidate) {
    ++verified;
    return wrapped->inner->verify(candidate);
  };
  fixture.task.evaluator = wrapped;
  fixture.task.clock = nullptr;
  fixture.task.first = {"a=7"};
  fixture.options.workers = 2;
  const TuningResult result = fixture.run();
  CHECK(result.measuredNow == 50);
  CHECK(fixture.sink.trials().front().config == "a=7");
}
