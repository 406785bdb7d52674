//===- warm_start_test.cpp - what a search tries first ---------------------------===//
// The default, then winners of the same function elsewhere, the nearest first; from the user's own and shipped stores.
#include "codegen/Config/KernelConfig.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/TunePrior.h"
#include "tests/unit/recorded_workloads.h"
#include "tests/unit/store_fixture.h"

using namespace heddle;
using namespace heddle::test;

namespace {

const TuneSpace &space() {
  static const LoadedWorkload loaded = load({"", "causal", {}, 1, 8, 8, 4096, 64});
  return *loaded.space;
}

WinnerKey key() { return WinnerKey(familyOf(space().pattern(), space().request()), {3, 4, 1}, someDevice()); }

// The text of the default with other stages.
std::string textWith(int64_t stages) {
  std::string text = space().defaultPoint();
  const size_t at = text.find("stages=") + 7;
  return text.replace(at, text.find(' ', at) - at, std::to_string(stages));
}

// A tuned winner with so many stages, so many doublings of work away.
void publish(Store &store, int64_t stages, int64_t farther, const std::string &device = "Some GPU", bool isTuned = true,
             const std::string &pattern = "") {
  KernelRecord record = someKernel("content-" + std::to_string(stages) + device + pattern);
  static_cast<KernelFamily &>(record) = key();
  if (!pattern.empty())
    record.pattern = pattern;
  record.config = space().configAt(*space().space().parse(textWith(stages))).str();
  DeviceIdentity identity = someDevice();
  identity.deviceName = device;
  Winner winner = someWinner(record, {3 + farther, 4, 1}, identity);
  winner.isTuned = isTuned;
  const Status status = store.publish(record, winner);
  REQUIRE_MESSAGE(status.isOk(), status.message());
}

std::vector<std::string> startsFrom(const std::vector<const Store *> &stores) {
  auto texts = warmStarts(stores, key(), space());
  REQUIRE_MESSAGE(texts.isOk(), texts.status().message());
  return texts.take();
}

} // namespace

TEST_CASE("without winners the default is all there is") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  CHECK(startsFrom({&store}) == std::vector<std::string>{space().defaultPoint()});
  CHECK(space().space().parse(space().defaultPoint()).isOk());
}

TEST_CASE("winners of other lengths and other GPUs follow, the nearest first, whichever store has them") {
  ScratchFolder folder;
  Store own = openStore(folder / "own.db", writing()), shipped = openStore(folder / "shipped.db", writing());
  publish(own, 6, 3);
  publish(own, 3, 1, "Another GPU");
  publish(shipped, 2, 1);
  const std::vector<std::string> expected = {space().defaultPoint(), textWith(2), textWith(6), textWith(3)};
  std::vector<std::string> distinct;
  for (const std::string &text : expected)
    if (std::find(distinct.begin(), distinct.end(), text) == distinct.end())
      distinct.push_back(text);
  CHECK(distinct.size() >= 3);
  CHECK(startsFrom({&own, &shipped}) == distinct);
}

TEST_CASE("defaults that stand in and winners of other patterns are no neighbours") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  publish(store, 6, 0, "Some GPU", false);
  publish(store, 3, 0, "Some GPU", true, "another pattern");
  CHECK(startsFrom({&store}).size() == 1);
}

TEST_CASE("a winner that is no point of the space any more is left out") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord record = someKernel("old");
  static_cast<KernelFamily &>(record) = key();
  record.config = "skeleton=gone\n";
  REQUIRE(store.publish(record, someWinner(record)).isOk());
  CHECK(startsFrom({&store}).size() == 1);
}
