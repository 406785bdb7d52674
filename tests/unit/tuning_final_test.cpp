// The final of a session, the published winner, and trials in the store. Promises [1] and [2] of
// TuningSession.h.
#include "tests/unit/tuner_fixture.h"
#include "tuner/Search/StoreSink.h"

#include <chrono>
#include <filesystem>

using namespace heddle;
using namespace heddle::tuner;

TEST_CASE("the final undoes a drift that misled the search") {
  // The device slows down by 0.5% per launch during the search, and then stays slow.
  const RecordedTable table = tableOf({row("a=1", 100), row("a=2", 98), row("a=3", 96), row("a=4", 120)});
  Fixture fixture(table);
  auto evaluator = wrap(fixture);
  int launches = 0;
  evaluator->onSample = [&](Candidate &candidate) {
    Sample sample = fixture.evaluator->sample(candidate);
    sample.us *= std::pow(1.005, std::min(++launches, 30));
    return sample;
  };
  CHECK(fixture.run().winner->config == "a=1");

  Fixture withFinal(table);
  launches = 0;
  auto second = wrap(withFinal);
  second->onSample = [&](Candidate &candidate) {
    Sample sample = withFinal.evaluator->sample(candidate);
    sample.us *= std::pow(1.005, std::min(++launches, 30));
    return sample;
  };
  withFinal.options.finalists = 3;
  const TuningResult result = withFinal.run();
  REQUIRE(result.finalists.size() == 3);
  CHECK(result.finalists[0].config == "a=3");
  CHECK(result.winner->config == "a=3");
  CHECK(result.winner->medianUs == result.finalists[0].medianUs);
  CHECK(bool(result.candidate));
  CHECK(withFinal.sink.trials().size() == 4);
}

TEST_CASE("[1] a winner that is not confirmed loses to the next, and its record says why") {
  const RecordedTable table = tableOf({row("a=1", 100), row("a=2", 98), row("a=3", 96)});
  for (int finalists : {0, 3}) {
    Fixture fixture(table);
    fixture.options.finalists = finalists;
    auto evaluator = wrap(fixture);
    int asked = 0;
    evaluator->onConfirm = [&](Candidate &) {
      Verification verification;
      if (++asked == 1)
        verification.failure = Failure{Outcome::wrong, "wrote into 'q'"};
      return verification;
    };
    const TuningResult result = fixture.run();
    REQUIRE(result.winner);
    CHECK(result.winner->config == "a=2");
    CHECK(bool(result.candidate)); // without a final it had been let go
    CHECK(asked == 2);
    CHECK(result.outcomes[size_t(Outcome::wrong)] == 1);
    CHECK(fixture.sink.trials().back().config == "a=3");
    CHECK(fixture.sink.trials().back().message == "as the winner: wrote into 'q'");
    CHECK(fixture.sink.trials().back().outcome == Outcome::wrong);
  }
}

TEST_CASE("the published winner stays unless something new is measured, and enters the final") {
  const RecordedTable table = countedTable(6);
  Fixture fixture(table);
  fixture.task.strategy = "exhaustive:limit=4";
  fixture.options.finalists = 2;
  fixture.run();
  fixture.task.incumbent = "a=3";
  CHECK(fixture.run().winner->config == "a=3");

  fixture.task.strategy = "exhaustive";
  const TuningResult resumed = fixture.run();
  CHECK(resumed.measuredNow == 2);
  REQUIRE(resumed.finalists.size() == 3);
  CHECK(resumed.finalists[0].config == "a=0");
  CHECK(resumed.finalists[2].config == "a=3");
  CHECK(bool(resumed.candidate));
}

TEST_CASE("[1] a known point whose new binary is wrong leaves the final and the records") {
  const RecordedTable before = tableOf({row("a=1", 50), row("a=2", 52), row("a=3", 54)});
  Fixture fixture(before);
  fixture.task.strategy = "exhaustive:limit=2";
  CHECK(fixture.run().winner->config == "a=1");

  const RecordedTable now = tableOf({row("a=1", 50, Outcome::wrong), row("a=2", 52), row("a=3", 54)});
  fixture.evaluator = std::make_shared<RecordedEvaluator>(now, before.space(),
                                                          RecordedEvaluator::Options{fixture.clock.get(), 0.001, 1});
  fixture.task.evaluator = fixture.evaluator;
  fixture.task.strategy = "exhaustive";
  fixture.options.finalists = 3;
  const TuningResult result = fixture.run();
  CHECK(result.winner->config == "a=2");
  CHECK(count(result, Outcome::wrong) == 1);
  CHECK(count(result, Outcome::measured) == 2);
  REQUIRE(fixture.sink.trials().size() == 3);
  CHECK(fixture.sink.trials()[0].outcome == Outcome::wrong);
  CHECK(fixture.sink.trials()[0].message == "in the final: recorded");
}

TEST_CASE("[2] a session resumes from a database that another process could have left") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("heddle_sink_" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "trials.db").string();
  const RecordedTable table = modelTable(9);
  WinnerKey key;
  key.pattern = "0123";
  key.arch = "sm_90";
  WinnerKey otherKey = key;
  otherKey.headDim = 128;
  size_t recorded = 0;
  for (int session = 0; session < 3; ++session) {
    StoreOptions writing;
    writing.mode = StoreMode::readWrite;
    Result<Store> store = Store::open(path, writing);
    REQUIRE_MESSAGE(store.isOk(), store.status().message());
    StoreTrialSink sink(*store, key);
    Fixture fixture(table);
    fixture.task.sink = &sink;
    fixture.options.budgetSeconds = session < 2 ? 30 : 1e6;
    const TuningResult result = fixture.run();
    CHECK(result.known == recorded);
    CHECK(result.measuredNow > 0);
    CHECK(fixture.evaluator->prepareCounts().size() <= result.measuredNow + size_t(fixture.options.ahead));
    recorded += result.measuredNow;
    CHECK(sink.known(table.space())->size() == recorded);
    CHECK(StoreTrialSink(*store, otherKey).known(table.space())->empty());
    if (session == 2)
      CHECK(result.winner->config == table.best()->config);
  }
  CHECK(recorded == table.trials().size());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a trial survives the form in which it is stored") {
  const RecordedTable table = modelTable(9);
  WinnerKey key;
  key.pattern = "0123";
  key.deviceName = "some device";
  for (const PointTrial &trial : table.trials()) {
    const heddle::Trial record = toRecord(table.space(), trial, key);
    CHECK(record.pattern == "0123");
    CHECK(record.deviceName == "some device");
    CHECK(record.configDigest == table.space().digest(trial.point));
    Result<PointTrial> back = fromRecord(table.space(), record);
    REQUIRE(back.isOk());
    CHECK(back->point == trial.point);
    CHECK(back->config == trial.config);
    CHECK(back->outcome == trial.outcome);
    CHECK(back->message == trial.message);
    CHECK(back->medianUs == trial.medianUs);
    CHECK(back->maxError == trial.maxError);
    CHECK(back->spillBytes == trial.spillBytes);
  }
  heddle::Trial damaged = toRecord(table.space(), *table.best(), key);
  damaged.medianUs = 0;
  CHECK(fromRecord(table.space(), damaged).status().code() == StatusCode::corrupt);
  damaged = toRecord(table.space(), *table.best(), key);
  damaged.outcome = "splendid";
  CHECK(fromRecord(table.space(), damaged).status().code() == StatusCode::corrupt);
}
