//===- store_test.cpp - rows in, rows out, lookups, upkeep ------------------===//
// Numbers in brackets are the promises of runtime/Store/Store.h.
#include "runtime/Core/FieldText.h"
#include "runtime/Store/Rows.h"
#include "runtime/Store/StoreImpl.h"
#include "store_fixture.h"
#include "store_sql.h"

#include <algorithm>
#include <sqlite3.h>

using namespace heddle;
using namespace heddle::test;

namespace {

void require(const Status &status) { REQUIRE_MESSAGE(status.isOk(), status.str()); }

StoreLookup find(const Store &store, const LookupQuery &query) {
  Result<StoreLookup> found = store.lookup(query);
  REQUIRE_MESSAGE(found.isOk(), found.status().str());
  return found.take();
}

WinnerKey keyOf(ProblemBucket bucket = {3, 2, 1}, DeviceIdentity device = someDevice()) {
  return WinnerKey(someFamily(), bucket, std::move(device));
}

// The columns of T's table without the extra ones.
template <class T> std::string tableColumns(const std::string &path) {
  sqlite::Database database = sqlite::Database::open(path, path, SQLITE_OPEN_READONLY, {1000}).take();
  sqlite::Statement statement = database.prepare("SELECT name FROM pragma_table_info(?) ORDER BY cid").take();
  statement.bind(std::string(sqlite::Table<T>::name));
  const std::vector<std::string> extras = sqlite::Table<T>::extras();
  std::string names, name;
  while (*statement.step()) {
    require(statement.read(0, name));
    if (std::find(extras.begin(), extras.end(), name) == extras.end())
      names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

} // namespace

TEST_CASE("[8] what was published is read back unchanged, also after closing") {
  ScratchFolder folder;
  KernelRecord record = someKernel("k1");
  Winner winner = someWinner(record);
  winner.createdUnix = 1234;
  {
    require(openStore(folder / "a.db", writing()).publish(record, winner));
  }
  Store store = openStore(folder / "a.db", {});
  StoreLookup found = find(store, keyOf());
  CHECK(found.match == MatchKind::exact);
  CHECK(fieldsEqual(found.record, record));
  CHECK(fieldsEqual(found.winner, winner));
  CHECK(fieldsEqual(*store.kernel("k1"), record));
  CHECK(store.kernel("k2").status().code() == StatusCode::notFound);
}

TEST_CASE("the schema has exactly the columns of the field lists") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  openStore(path, writing());
  CHECK(tableColumns<KernelRecord>(path) == sqlite::columnList<KernelRecord>());
  CHECK(tableColumns<Winner>(path) == sqlite::columnList<Winner>());
  CHECK(tableColumns<Trial>(path) == sqlite::columnList<Trial>());
  CHECK(tableColumns<DeviceRecord>(path) == sqlite::columnList<DeviceRecord>());
  CHECK(tableColumns<LinkRecord>(path) == sqlite::columnList<LinkRecord>());
  CHECK(tableColumns<NameRecord>(path) == sqlite::columnList<NameRecord>());
}

TEST_CASE("[7] a lookup says how it matched, best first") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  CHECK(find(store, keyOf()).match == MatchKind::none);

  KernelRecord untuned = someKernel("untuned");
  Winner standIn = someWinner(untuned, {0, 0, 1}, {"", "sm_90", 0, 0});
  standIn.isTuned = 0;
  require(store.publish(untuned, standIn));
  CHECK(find(store, keyOf()).match == MatchKind::untunedDefault);

  KernelRecord elsewhere = someKernel("elsewhere");
  require(store.publish(elsewhere, someWinner(elsewhere, {3, 2, 1}, {"Other GPU", "sm_90", 100, 80})));
  CHECK(find(store, keyOf()).match == MatchKind::sameArchitecture);
  CHECK(find(store, keyOf()).record.contentKey == "elsewhere");

  KernelRecord far = someKernel("far"), near = someKernel("near");
  require(store.publish(far, someWinner(far, {9, 9, 1})));
  require(store.publish(near, someWinner(near, {5, 2, 1})));
  StoreLookup found = find(store, keyOf());
  CHECK(found.match == MatchKind::nearestBucket);
  CHECK(found.record.contentKey == "near");
  CHECK(find(store, keyOf({8, -1, -1})).record.contentKey == "far");

  KernelRecord exact = someKernel("exact");
  require(store.publish(exact, someWinner(exact)));
  CHECK(find(store, keyOf()).match == MatchKind::exact);
  CHECK(find(store, keyOf()).record.contentKey == "exact");
}

TEST_CASE("[7] lookups never return code that cannot run, nor another function") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord record = someKernel("k1");
  record.kernelArch = "sm_90a";
  record.minDriver = 12040;
  require(store.publish(record, someWinner(record)));
  CHECK(find(store, LookupQuery(keyOf(), 13000)).match == MatchKind::exact);
  CHECK(find(store, LookupQuery(keyOf(), 12030)).match == MatchKind::none);
  CHECK(find(store, keyOf({3, 2, 1}, {"New GPU", "sm_100", 160, 180})).match == MatchKind::none);
  KernelRecord portable = someKernel("k2");
  portable.kernelArch = "sm_80";
  require(store.publish(portable, someWinner(portable, {1, 1, 1}, {"Old GPU", "sm_80", 108, 80})));
  StoreLookup fallback = find(store, keyOf({3, 2, 1}, {"New GPU", "sm_100", 160, 180}));
  CHECK(fallback.match == MatchKind::untunedDefault);
  CHECK(fallback.record.contentKey == "k2");

  for (int field = 0; field < 6; ++field) {
    WinnerKey other = keyOf();
    if (field == 0)
      other.pattern = "pattern-b";
    if (field == 1)
      other.kind = "backward";
    if (field == 2)
      other.dtype = DType::fp16;
    if (field == 3)
      other.headDim = 128;
    if (field == 4)
      other.valueDim = 128;
    if (field == 5)
      other.generator = "g2";
    CHECK(find(store, other).match == MatchKind::none);
  }
  WinnerKey anyGenerator = keyOf();
  anyGenerator.generator.clear();
  CHECK(find(store, anyGenerator).record.contentKey == "k1");
}

TEST_CASE("an untuned winner never replaces a tuned one, a later tuned one does") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord first = someKernel("first"), second = someKernel("second");
  Winner untuned = someWinner(second);
  untuned.isTuned = 0;
  require(store.publish(second, untuned));
  require(store.publish(first, someWinner(first)));
  require(store.publish(second, untuned));
  CHECK(find(store, keyOf()).record.contentKey == "first");
  Winner slower = someWinner(second);
  slower.medianUs = 99;
  require(store.publish(second, slower));
  CHECK(find(store, keyOf()).record.contentKey == "second");
  CHECK(store.counts()->kernels == 2);
  CHECK(store.counts()->winners == 1);
}

TEST_CASE("problems of one bucket have winners of their own, and the nearest answers, not the fastest or the newest") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  auto publish = [&](const std::string &content, int64_t seqlen, double us, int64_t created) {
    KernelRecord record = someKernel(content);
    Winner winner = someWinner(record);
    static_cast<ExactProblem &>(winner) = {1, 16, 16, seqlen, seqlen};
    winner.medianUs = us;
    winner.createdUnix = created;
    require(store.publish(record, winner));
  };
  publish("long", 12288, 90, 100);
  publish("short", 8448, 40, 200);
  CHECK(store.counts()->winners == 2);
  auto ask = [&](int64_t seqlen) {
    LookupQuery query = keyOf();
    static_cast<ExactProblem &>(query) = {1, 16, 16, seqlen, seqlen};
    StoreLookup found = find(store, query);
    CHECK(found.match == MatchKind::exact);
    CHECK_FALSE(found.isForBucket);
    return found.record.contentKey;
  };
  CHECK(ask(12288) == "long");
  CHECK(ask(11000) == "long");
  CHECK(ask(8448) == "short");
  CHECK(ask(9000) == "short");
  CHECK(ask(0) == "short"); // the newest, where the sizes are not known
}

TEST_CASE("publishing refuses rows that could not be used") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord record = someKernel("k1");
  Winner winner = someWinner(record);
  KernelRecord noCode = record, badPlan = record, otherFamily = record;
  noCode.cubin.clear();
  noCode.ptx.clear();
  badPlan.plan = "nonsense";
  otherFamily.headDim = 128;
  Winner otherKernel = winner;
  otherKernel.contentKey = "k2";
  CHECK(store.publish(noCode, winner).code() == StatusCode::invalidArgument);
  CHECK(store.publish(badPlan, winner).message().find("line 1") != std::string::npos);
  CHECK(store.publish(otherFamily, winner).code() == StatusCode::invalidArgument);
  CHECK(store.publish(record, otherKernel).code() == StatusCode::invalidArgument);
  CHECK(store.counts()->kernels == 0);
  require(store.publish(record, winner));
  Store reader = openStore(folder / "a.db", {});
  CHECK(reader.publish(record, winner).code() == StatusCode::denied);
  CHECK(reader.prune({}).status().code() == StatusCode::denied);
}

TEST_CASE("trials resume by session and configuration") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  require(store.recordTrial(someTrial("block_m=64")));
  require(store.recordTrial(someTrial("block_m=128", 8)));
  require(store.recordTrial(someTrial("block_m=64", 9)));
  Trial failed = someTrial("block_m=256");
  failed.outcome = "wrong";
  failed.maxError = std::nan("");
  require(store.recordTrial(failed));
  Trial other = someTrial("block_m=64");
  other.gqaRatio = 4;
  require(store.recordTrial(other));
  Trial longer = someTrial("block_m=64");
  longer.seqlenQ = longer.seqlenK = 12288;
  require(store.recordTrial(longer));
  Result<std::vector<Trial>> trials = store.trials(Trial::sessionKey(keyOf()));
  REQUIRE(trials.isOk());
  REQUIRE(trials->size() == 3);
  for (const Trial &trial : *trials) {
    CHECK(trial.createdUnix > 0);
    CHECK(trial.medianUs == (trial.config == "block_m=64" ? 9 : trial.config == "block_m=128" ? 8 : 10));
    CHECK(std::isinf(trial.maxError) == (trial.outcome == "wrong"));
  }
  CHECK(store.trials("unknown")->empty());
  CHECK(store.allTrials()->size() == 5);
  CHECK(store.recordTrial(Trial()).code() == StatusCode::invalidArgument);
}

TEST_CASE("names lead to patterns and are listed when one is missing") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  require(store.setName({"causal", "digest-1", "", 0}));
  require(store.setName({"sliding_window", "digest-2", "left", 0}));
  require(store.setName({"causal", "digest-3", "", 0}));
  CHECK(store.findName("causal")->pattern == "digest-3");
  CHECK(store.findName("sliding_window")->parameters == "left");
  CHECK(store.findName("full").status().message().find("it names causal, sliding_window") != std::string::npos);
  CHECK(store.setName({"", "x", "", 0}).code() == StatusCode::invalidArgument);
}

TEST_CASE("listings leave out the code and count the winners") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord record = someKernel("k1");
  require(store.publish(record, someWinner(record)));
  require(store.publish(record, someWinner(record, {7, 7, 1})));
  DeviceRecord device;
  static_cast<DeviceIdentity &>(device) = someDevice();
  device.l2Bytes = 50 << 20;
  require(store.recordDevice(device));
  std::vector<KernelSummary> kernels = *store.kernels();
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].record.cubin.empty());
  CHECK(kernels[0].cubinBytes == int64_t(record.cubin.size()));
  CHECK(kernels[0].ptxBytes == int64_t(record.ptx.size()));
  CHECK(kernels[0].winnerCount == 2);
  CHECK(store.winners()->size() == 2);
  CHECK(store.devices()->at(0).l2Bytes == 50 << 20);
}

TEST_CASE("links of as many ranks on as many hosts with such GPUs are those that were measured last") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  LinkRecord links = someLinks();
  require(store.recordLinks(links));
  links.gbps = 300, links.createdUnix = 200;
  require(store.recordLinks(links));
  links.hosts = 2, links.gbps = 40;
  require(store.recordLinks(links));
  const std::vector<LinkRecord> all = *store.links();
  REQUIRE(all.size() == 2);
  CHECK(all[0].gbps == 300);
  CHECK(all[1].gbps == 40);
  CHECK(store.counts()->links == 2);
  CHECK(openStore(folder / "a.db", {}).verify()->problems.empty());
  for (auto [ranks, hosts, gbps, latency, said] : {std::tuple(1, 1, 100.0, 5.0, "ranks: expected 2 or more, got 1"),
                                                   {2, 3, 100.0, 5.0, "hosts: expected 1 to as many as ranks, got 3"},
                                                   {2, 1, 0.0, 5.0, "gbps: expected 0.001 to 1e6, got 0"},
                                                   {2, 1, std::nan(""), 5.0, "gbps: expected 0.001 to 1e6, got "},
                                                   {2, 1, 100.0, -1.0, "latency_us: expected 0 to 1e6, got -1"}}) {
    links.ranks = ranks, links.hosts = hosts, links.gbps = gbps, links.latencyUs = latency;
    const Status refused = store.recordLinks(links);
    CHECK(refused.code() == StatusCode::invalidArgument);
    CHECK_MESSAGE(refused.message().find(said) != std::string::npos, refused.message());
  }
  CHECK(store.links()->size() == 2);
}

TEST_CASE("prune drops what is old, of other generators, or unreferenced, and only counts in a dry run") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  KernelRecord oldKernel = someKernel("old"), newKernel = someKernel("new"), foreign = someKernel("foreign");
  foreign.generator = "g0";
  Winner oldWinner = someWinner(oldKernel);
  oldWinner.createdUnix = 1000;
  require(store.publish(oldKernel, oldWinner));
  require(store.publish(newKernel, someWinner(newKernel, {4, 4, 1})));
  require(store.publish(foreign, someWinner(foreign)));
  require(store.recordTrial(someTrial("block_m=64")));
  PruneOptions options;
  options.olderThanUnix = 2000;
  options.isDryRun = true;
  StoreCounts counted = *store.prune(options);
  CHECK(counted.winners == 1);
  CHECK(counted.kernels == 1);
  CHECK(store.counts()->kernels == 3);
  options.isDryRun = false;
  CHECK(store.prune(options)->kernels == 1);
  CHECK(store.kernel("old").status().code() == StatusCode::notFound);
  PruneOptions byGenerator;
  byGenerator.keepGenerator = "g1";
  StoreCounts gone = *store.prune(byGenerator);
  CHECK(gone.kernels == 1);
  CHECK(gone.winners == 1);
  CHECK(gone.trials == 0);
  CHECK(store.kernel("new").isOk());
  CHECK(store.verify()->problems.empty());
}

TEST_CASE("a store of an older version is refused with what to do, and stays as it is") {
  ScratchFolder folder;
  const std::string path = folder / "old.db";
  require(openStore(path, writing()).finalise());
  runSql(path, "PRAGMA user_version = 2");
  const std::string before = readFile(path);
  for (StoreMode mode : {StoreMode::immutable, StoreMode::readOnly, StoreMode::readWrite}) {
    StoreOptions options;
    options.mode = mode;
    const Status refused = Store::open(path, options).status();
    CHECK(refused.code() == StatusCode::unsupported);
    CHECK_MESSAGE(refused.message().find("its schema has version 2, this program reads versions 4 to " +
                                         std::to_string(kStoreVersion) + " only; compile or tune into a new file") !=
                      std::string::npos,
                  refused.message());
  }
  CHECK(readFile(path) == before);
}

TEST_CASE("a store of the version before is read as it is, and gets what it lacks when it is opened to be written") {
  ScratchFolder folder;
  const std::string path = folder / "old.db";
  const KernelRecord kernel = someKernel("k");
  {
    Store store = openStore(path, writing());
    require(store.publish(kernel, someWinner(kernel)));
    require(store.finalise());
  }
  runSql(path, "DROP TABLE links; PRAGMA user_version = 4");
  const std::string before = readFile(path);
  {
    Store old = openStore(path, {});
    CHECK(old.winners()->size() == 1);
    CHECK(find(old, keyOf()).match == MatchKind::exact);
    CHECK(old.links()->empty());
    CHECK(old.counts()->total() == 2);
    CHECK(old.verify()->problems.empty());
    Store other = openStore(folder / "other.db", writing());
    require(other.recordLinks(someLinks()));
    CHECK(Store::previewMerge(path, {folder / "other.db"})->at(0).added.links == 1);
    CHECK(other.merge({path})->at(0).added.winners == 1);
  }
  CHECK(readFile(path) == before);
  Store now = openStore(path, writing());
  require(now.recordLinks(someLinks()));
  CHECK(now.links()->size() == 1);
  CHECK(now.winners()->size() == 1);
  CHECK(now.verify()->problems.empty());
  require(now.finalise());
  sqlite::Database database = sqlite::Database::open(path, path, SQLITE_OPEN_READONLY, {}).take();
  CHECK(*database.queryInteger("PRAGMA user_version") == kStoreVersion);
}

TEST_CASE("a store of the version before that holds something else is damage") {
  ScratchFolder folder;
  const std::string path = folder / "old.db";
  require(openStore(path, writing()).finalise());
  runSql(path, "DROP TABLE links; CREATE TABLE more (a); PRAGMA user_version = 4");
  const std::string before = readFile(path);
  for (StoreMode mode : {StoreMode::readOnly, StoreMode::readWrite}) {
    StoreOptions options;
    options.mode = mode;
    CHECK(Store::open(path, options).status().code() == StatusCode::corrupt);
  }
  CHECK(readFile(path) == before);
}

TEST_CASE("the schema is made once") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  sqlite::Database database =
      sqlite::Database::open(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, {1000}).take();
  CHECK(checkSchema(database).code() == StatusCode::notFound);
  require(createSchema(database));
  require(createSchema(database));
  require(checkSchema(database));
  CHECK(*database.queryInteger("PRAGMA user_version") == kStoreVersion);
}
