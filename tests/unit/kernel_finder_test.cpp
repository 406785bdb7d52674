// What a program that asks before every launch gets: answers from memory, and never ones that another store, device or
// publication has overtaken.
#include "device_fixture.h"
#include "runtime/Api/KernelFinder.h"
#include "store_fixture.h"
#include "support/StandingClock.h"

#include <atomic>
#include <thread>

using namespace heddle;
using namespace heddle::fake;
using test::require;
using test::ScratchFolder;

namespace {

void publish(Store &store, const std::string &contentKey, const std::string &pattern, bool isTuned,
             int64_t minDriver = 12000) {
  KernelRecord record = test::forwardRecord(contentKey);
  record.minDriver = minDriver;
  record.pattern = pattern;
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, {0, 3, 2}, {"Fake GPU", "sm_90", 132, 140});
  winner.contentKey = contentKey;
  winner.isTuned = isTuned;
  winner.medianUs = isTuned ? 7.5 : 0;
  require(store.publish(record, winner));
}

/// A store with an untuned kernel of "causal", held open by a writer, and a finder that reads it.
struct Scene {
  ScratchFolder folder;
  std::string causal = std::string(64, 'a'), full = std::string(64, 'c');
  Store writer = test::openStore(folder / "kernels.db", test::writing());
  KernelFinder finder;
  std::vector<Device> devices;

  Scene() {
    test::startFake();
    publish(writer, "untuned", causal, false);
    require(writer.setName({"causal", causal, "", 0}));
    finder.add(test::openStore(folder / "kernels.db", {}));
    for (int ordinal = 0; ordinal < 2; ++ordinal)
      devices.push_back(require(Device::open(ordinal)));
  }

  Result<FoundKernel> find(const std::string &pattern, int device = 0) {
    LookupQuery query;
    query.pattern = pattern;
    query.headDim = 64;
    query.valueDim = 128;
    query.workPerSm = query.tilesPerRow = query.gqaRatio = query.queryRows = -1;
    return finder.find(devices[device], query);
  }
  FoundKernel found(const std::string &pattern, int device = 0) { return require(find(pattern, device)); }
};

} // namespace

TEST_CASE("where all that fits wants a newer driver the answer says which") {
  Scene scene;
  publish(scene.writer, "newer", scene.full, false, 13040);
  const Status status = scene.find(scene.full).status();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message() == "load kernel newer: needs a driver for CUDA version 13040 or later, this is 13000; update "
                            "the driver");
  publish(scene.writer, "older", scene.full, true);
  scene.finder.distrust();
  CHECK(scene.found(scene.full).kernel.record().contentKey == "older");
}

TEST_CASE("a question asked again is answered from memory until the store is asked for changes") {
  Scene scene;
  FoundKernel first = scene.found("causal");
  CHECK(first.match == MatchKind::untunedDefault);
  publish(scene.writer, "tuned", scene.causal, true);
  test::moveClock(KernelFinder::kTrustedFor - std::chrono::nanoseconds(1));
  FoundKernel second = scene.found("causal");
  CHECK(second.kernel.record().contentKey == "untuned");
  test::moveClock(std::chrono::nanoseconds(1));
  FoundKernel third = scene.found("causal");
  CHECK(third.kernel.record().contentKey == "tuned");
  CHECK(third.match == MatchKind::nearestBucket);
  CHECK(third.medianUs == 7.5);
}

TEST_CASE("a kernel that nobody holds is looked up and loaded again") {
  Scene scene;
  require(scene.find("causal").status());
  require(scene.find("causal").status());
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 2);
  FoundKernel held = scene.found("causal");
  FoundKernel again = scene.found("causal");
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 3);
  CHECK(&held.kernel.record() == &again.kernel.record());
}

TEST_CASE("every device, pattern and bucket has an answer of its own") {
  Scene scene;
  publish(scene.writer, "of full", scene.full, false);
  FoundKernel zero = scene.found("causal", 0), one = scene.found("causal", 1), full = scene.found(scene.full);
  CHECK(scene.found("causal", 0).kernel.device().state() == scene.devices[0].state());
  CHECK(scene.found("causal", 1).kernel.device().state() == scene.devices[1].state());
  CHECK(scene.found(scene.full).kernel.record().contentKey == "of full");
  CHECK(scene.found(scene.causal).kernel.record().contentKey == "untuned");
}

TEST_CASE("failures are not remembered, and a store that is added answers at once") {
  Scene scene;
  CHECK(scene.find(scene.full).status().code() == StatusCode::notFound);
  publish(scene.writer, "of full", scene.full, false);
  CHECK(scene.found(scene.full).kernel.record().contentKey == "of full");
  FoundKernel before = scene.found("causal");
  Store shipped = test::openStore(scene.folder / "shipped.db", test::writing());
  publish(shipped, "shipped", scene.causal, true);
  scene.finder.add(std::move(shipped));
  CHECK(scene.found("causal").kernel.record().contentKey == "shipped");
}

TEST_CASE("one winner of a bucket answers for all its lengths from memory, several each for the lengths near theirs") {
  Scene scene;
  auto publishFor = [&](const std::string &content, int64_t seqlen) {
    KernelRecord record = test::forwardRecord(content);
    record.pattern = scene.causal;
    Winner winner = test::someWinner(record, {0, 3, 2, 7}, {"Fake GPU", "sm_90", 132, 140});
    static_cast<ExactProblem &>(winner) = {1, 4, 2, seqlen, seqlen};
    require(scene.writer.publish(record, winner));
    scene.finder.distrust();
  };
  auto ask = [&](int64_t seqlen) {
    LookupQuery query;
    static_cast<ProblemBucket &>(query) = {0, 3, 2, 7};
    static_cast<ExactProblem &>(query) = {1, 4, 2, seqlen, seqlen};
    query.pattern = scene.causal;
    query.headDim = 64;
    query.valueDim = 128;
    return require(scene.finder.find(scene.devices[0], query));
  };
  publishFor("of 600", 600);
  const FoundKernel first = ask(1000), again = ask(700);
  CHECK(first.kernel.record().contentKey == "of 600");
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 1);
  publishFor("of 1000", 1000);
  const FoundKernel longer = ask(1000), shorter = ask(700);
  CHECK(longer.kernel.record().contentKey == "of 1000");
  CHECK(shorter.kernel.record().contentKey == "of 600");
  CHECK(ask(1000).kernel.record().contentKey == "of 1000");
}

TEST_CASE("an answer from memory has all that the first one had") {
  Scene scene;
  KernelRecord record = test::forwardRecord("tuned");
  record.pattern = scene.full;
  require(scene.writer.publish(record, test::someWinner(record, {0, 3, 2, 7}, {"Fake GPU", "sm_90", 132, 140})));
  const FoundKernel first = scene.found(scene.full), again = scene.found(scene.full);
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 1);
  const auto &[match, medianUs, queryRows] = static_cast<const KernelFinding &>(first);
  CHECK((match != MatchKind::none && medianUs == 12.5 && queryRows == 7));
  const auto &[matchAgain, medianAgain, rowsAgain] = static_cast<const KernelFinding &>(again);
  CHECK(matchAgain == match);
  CHECK(medianAgain == medianUs);
  CHECK(rowsAgain == queryRows);
  CHECK(&again.kernel.record() == &first.kernel.record());
}

TEST_CASE("threads that ask together get the same kernel") {
  Scene scene;
  FoundKernel held = scene.found("causal");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        Result<FoundKernel> found = scene.find(k % 2 ? "causal" : scene.causal);
        wrong += !found || &found->kernel.record() != &held.kernel.record();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}
