//===- tuning_threads_test.cpp ----------------------------------------------===//
// Preparation in worker threads: overlap, bounds, hangs. Promises [3] and [6] of TuningSession.h.
#include "tests/unit/tuner_fixture.h"
#include "tests/unit/without_threads.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

using namespace heddle;
using namespace heddle::tuner;

namespace {

double secondsOf(const std::function<void()> &action) {
  const SteadyClock clock;
  const double start = clock.now();
  action();
  return clock.now() - start;
}

} // namespace

TEST_CASE("a compilation that hangs is a timed-out trial and costs only its thread") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  fixture.task.clock = nullptr;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.2;
  auto evaluator = wrap(fixture);
  auto released = std::make_shared<std::atomic<bool>>(false);
  auto wasTold = std::make_shared<std::atomic<bool>>(false);
  auto recorded = fixture.evaluator;
  evaluator->onPrepare = [released, wasTold, recorded](const Point &point, const std::atomic<bool> &stop) {
    const bool obeys = point.index[0] == 2, ignores = point.index[0] == 5;
    while ((obeys && !stop) || (ignores && !*released))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (obeys)
      *wasTold = true;
    return obeys || ignores ? Preparation() : recorded->prepare(point, stop);
  };
  TuningResult result;
  CHECK(secondsOf([&] { result = fixture.run(); }) < 5);
  *released = true;
  for (int i = 0; i < 1000 && !*wasTold; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(wasTold->load());
  CHECK(count(result, Outcome::timedOut) == 2);
  CHECK(result.measuredNow == 8);
  CHECK(result.winner->config == "a=0");
  for (const PointTrial &trial : fixture.sink.trials())
    if (trial.outcome == Outcome::timedOut)
      CHECK(trial.message.find("the limit is 0.20 s") != std::string::npos);
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

TEST_CASE("too many compilations that hang end the session") {
  const RecordedTable table = countedTable(8);
  Fixture fixture(table);
  fixture.task.clock = nullptr;
  fixture.options.workers = 2;
  fixture.options.prepareLimitSeconds = 0.05;
  fixture.options.maxAbandoned = 3;
  auto evaluator = wrap(fixture);
  evaluator->onPrepare = [](const Point &, const std::atomic<bool> &stop) {
    while (!stop)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
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
      changed.wait_for(lock, std::chrono::seconds(5), [&] { return most >= workers; });
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
    hasRunAhead |= recorded == 0 && changed.wait_for(lock, std::chrono::seconds(5), [&] { return prepared >= 3; });
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
  const SearchSpace space = SearchSpace::create("slow", {Knob::integers("a", values, "")}, {slow}).take();
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
