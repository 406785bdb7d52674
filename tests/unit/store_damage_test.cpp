//===- store_damage_test.cpp - flipped bits and schemas that are not a store's ---===//
// Flips: 200, or 2000 with HEDDLE_TEST_ALL=1. Numbers in brackets are the promises of runtime/Store/Store.h.
#include "store_contents.h"
#include "store_sql.h"

#include <cstdlib>
#include <functional>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int kPatterns = 3, kBuckets = 8;

std::string patternOf(int number) { return "pattern-" + std::to_string(number); }

// A row of every kind that a lookup, a tune or a report reads, fit to ship; little code, so that flips hit everything
// else.
void makeStore(const std::string &path) {
  Store store = openStore(path, writing());
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      const KernelRecord record =
          someKernel("k" + std::to_string(pattern) + std::to_string(bucket / 2), patternOf(pattern), 300);
      Winner winner = someWinner(record, {bucket, 2, 1});
      winner.medianUs = 10.5 + bucket, winner.createdUnix = 1000 + bucket;
      require(store.publish(record, winner));
      Trial trial = someTrial("block_m=" + std::to_string(64 * bucket), 8 + bucket);
      trial.createdUnix = 1000 + bucket, trial.pattern = patternOf(pattern);
      require(store.recordTrial(trial));
    }
    require(store.setName({"name-" + std::to_string(pattern), patternOf(pattern), "left right", 1000}));
  }
  DeviceRecord device;
  static_cast<DeviceIdentity &>(device) = someDevice();
  device.l2Bytes = 50 << 20, device.createdUnix = 1000;
  require(store.recordDevice(device));
  require(store.finalise());
}

template <class T> std::string said(const Result<T> &result, const std::function<std::string(const T &)> &text) {
  return result ? text(*result) : "refused";
}

template <class T> std::string rowsText(const Result<std::vector<T>> &rows) {
  return said<std::vector<T>>(rows, [](const std::vector<T> &all) {
    std::string text = "rows ";
    for (const T &row : all)
      text += fieldText(row);
    return text;
  });
}

// What lookups answer, "refused" for each that fails: of every key exactly, of one between buckets, of a GPU of another
// kind, of a driver that is too old for nothing here, and of every name.
std::vector<std::string> lookups(const Store &store) {
  std::vector<std::string> answers;
  auto ask = [&](const LookupQuery &query) {
    answers.push_back(said<StoreLookup>(store.lookup(query), [](const StoreLookup &found) {
      return matchKindName(found.match) + ("\n" + fieldText(found.record)) + fieldText(found.winner);
    }));
  };
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const KernelFamily family = someFamily(patternOf(pattern));
    for (int bucket = 0; bucket < kBuckets; ++bucket)
      ask(WinnerKey(family, {bucket, 2, 1}, someDevice()));
    ask(WinnerKey(family, {4, 5, 8}, someDevice()));
    ask(LookupQuery(WinnerKey(family, {-1, -1, -1}, {"Another GPU", "sm_90", 100, 80}), 12000));
    answers.push_back(said<NameRecord>(store.findName("name-" + std::to_string(pattern)),
                                       [](const NameRecord &name) { return fieldText(name); }));
  }
  return answers;
}

std::vector<std::string> listings(const Store &store) {
  return {rowsText(store.winners()), rowsText(store.allTrials()), rowsText(store.devices()), rowsText(store.links()),
          rowsText(store.names())};
}

bool isSilentlyOther(const std::vector<std::string> &now, const std::vector<std::string> &before) {
  for (size_t i = 0; i < before.size(); ++i)
    if (now[i] != before[i] && now[i] != "refused")
      return true;
  return false;
}

} // namespace

TEST_CASE("[4] every flipped bit that changes what is read is refused, or found by verify") {
  ScratchFolder folder;
  const std::string sound = folder / "sound.db", path = folder / "a.db";
  makeStore(sound);
  const std::string bytes = readFile(sound);
  const std::vector<std::string> right = lookups(openStore(sound, {})), rows = listings(openStore(sound, {}));
  std::mt19937 random(7);
  const int flips = std::getenv("HEDDLE_TEST_ALL") ? 2000 : 200;
  int refused = 0, found = 0, harmless = 0, hidden = 0;
  for (int flip = 0; flip < flips; ++flip) {
    const size_t at = random() % bytes.size(), bit = random() % 8;
    CAPTURE(at);
    CAPTURE(bit);
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ (1 << bit));
    writeFile(path, damaged);
    const Result<Store> store = Store::open(path);
    if (!store) {
      CHECK_MESSAGE(store.status().code() != StatusCode::internal, store.status().str());
      ++refused;
      continue;
    }
    const std::vector<std::string> answers = lookups(*store);
    const Result<VerifyReport> report = store->verify();
    const bool isFound = !report || !report->problems.empty();
    const bool isOther = isSilentlyOther(answers, right) || isSilentlyOther(listings(*store), rows);
    CHECK_MESSAGE((!isOther || isFound), "a changed answer, and nothing to see");
    ++(isFound ? found : harmless);
    hidden += isSilentlyOther(answers, right);
    CHECK(readFile(path) == damaged);
  }
  MESSAGE(flips << " flips: " << refused << " refused, " << found << " found, " << harmless << " in what nobody reads; "
                << hidden << " hid a row from a lookup");
  CHECK(refused > 0);
  CHECK(found > flips / 4);
}

TEST_CASE("[3] a store whose schema is not exactly ours is refused, and nothing foreign acts") {
  ScratchFolder folder;
  const std::string sound = folder / "sound.db", path = folder / "a.db";
  makeStore(sound);
  const std::pair<const char *, const char *> changes[] = {
      {"CREATE TRIGGER x AFTER INSERT ON kernels BEGIN DELETE FROM winners; END",
       "the trigger x is not one of a store's"},
      {"CREATE VIEW v AS SELECT * FROM winners", "the view v is not one of a store's"},
      {"CREATE TABLE t (a)", "the table t is not one of a store's"},
      {"CREATE INDEX i ON winners (generator)", "the index i is not one of a store's"},
      {"DROP INDEX winners_by_kernel", "the index winners_by_kernel is missing or changed"},
      {"DROP TABLE devices", "the index sqlite_autoindex_devices_1 is missing or changed"},
      {"DROP TABLE links", "the index sqlite_autoindex_links_1 is missing or changed"},
      {"ALTER TABLE names ADD COLUMN extra TEXT", "the table names is"},
      {"ALTER TABLE winners RENAME COLUMN median_us TO median", "the table winners is"},
      {"ANALYZE", "the table sqlite_stat1 is not one of a store's"}};
  for (const auto &change : changes) {
    const char *sql = change.first, *said = change.second;
    std::filesystem::copy_file(sound, path, std::filesystem::copy_options::overwrite_existing);
    runSql(path, sql);
    const std::string before = readFile(path);
    for (StoreMode mode : {StoreMode::readOnly, StoreMode::readWrite, StoreMode::immutable}) {
      StoreOptions options;
      options.mode = mode;
      const Status refused = Store::open(path, options).status();
      CHECK_MESSAGE(refused.code() == StatusCode::corrupt, sql);
      CHECK_MESSAGE(refused.message().find(said) != std::string::npos, refused.message());
    }
    CHECK(readFile(path) == before);
  }
}

TEST_CASE("[3] a trigger that comes while the store is open does not fire") {
  ScratchFolder folder;
  const std::string path = folder / "a.db";
  makeStore(path);
  Store store = openStore(path, writing());
  const int64_t winners = store.counts()->winners;
  runSql(path, "CREATE TRIGGER x AFTER INSERT ON kernels BEGIN DELETE FROM winners; END");
  const KernelRecord record = someKernel("later", patternOf(0));
  require(store.publish(record, someWinner(record, {99, 2, 1})));
  CHECK(store.counts()->winners == winners + 1);
}

TEST_CASE("[3] a letter of the schema that is another is corruption, wherever it stands") {
  ScratchFolder folder;
  const std::string sound = folder / "sound.db", path = folder / "a.db";
  makeStore(sound);
  const std::string bytes = readFile(sound);
  for (const char *word :
       {"CREATE TABLE kernels", "median_us REAL", "PRIMARY KEY NOT NULL", "needs_checksum TEXT", ") STRICT"}) {
    std::string damaged = bytes;
    const size_t at = damaged.find(word);
    REQUIRE(at != std::string::npos);
    damaged[at + 2] = char(damaged[at + 2] ^ 4);
    writeFile(path, damaged);
    CHECK_MESSAGE(Store::open(path).status().code() == StatusCode::corrupt, Store::open(path).status().str());
  }
}
