//===- store_names_test.cpp - files with several names, or none --------------===//
// Numbers in brackets are the promises of runtime/Store/Store.h.
#include "store_contents.h"
#include "store_sql.h"

#include <filesystem>

using namespace heddle;
using namespace heddle::test;

namespace fs = std::filesystem;

namespace {

Status publish(Store &store, const std::string &key, int64_t bucket) {
  const KernelRecord record = someKernel(key);
  return store.publish(record, someWinner(record, {bucket, 2, 1}));
}

void makeStore(const std::string &path) {
  Store store = openStore(path, writing());
  require(publish(store, "k1", 1));
}

int64_t winnersOf(const std::string &path) { return openStore(path, {}).counts()->winners; }

void checkRefused(const Status &status, const std::string &words) {
  CHECK(status.code() == StatusCode::denied);
  CHECK_MESSAGE(status.message().find(words) != std::string::npos, status.str());
}

} // namespace

TEST_CASE("[10] a file of several names is not written by any of them, and is read by all") {
  ScratchFolder folder;
  const std::string first = folder / "h1.db", second = folder / "h2.db";
  makeStore(first);
  fs::create_hard_link(first, second);
  const Store reader = openStore(first, {});
  CHECK(reader.counts()->winners == 1);
  for (const std::string &name : {first, second}) {
    const Status refused = Store::open(name, writing()).status();
    checkRefused(refused, "open store '" + name + "' for writing: the file has 2 names (hard links)");
    checkRefused(refused, "make a copy (cp) and write to that");
    CHECK(winnersOf(name) == 1);
  }
  fs::remove(second);
  Store alone = openStore(first, writing());
  require(publish(alone, "k2", 2));
  CHECK(reader.counts()->winners == 2);
}

TEST_CASE("[10] a store that is open writes no more once its file has another name, and again when that is gone") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", other = folder / "b.db", source = folder / "source.db";
  makeStore(path);
  makeStore(source);
  Store store = openStore(path, writing());
  fs::create_hard_link(path, other);
  const std::string before = contentsOf(path);
  const std::string words = "store '" + path + "': the file has 2 names";
  checkRefused(publish(store, "k2", 2), "write to " + words);
  checkRefused(store.recordTrial(someTrial("block_m=64")), words);
  checkRefused(store.setName({"causal", "pattern-a", "", 0}), words);
  checkRefused(store.recordDevice({}), words);
  checkRefused(store.merge({source}).status(), words);
  checkRefused(store.prune({}).status(), words);
  checkRefused(store.finalise(), "finalise " + words);
  CHECK(contentsOf(path) == before);
  CHECK(store.counts()->winners == 1);
  fs::remove(other);
  require(publish(store, "k2", 2));
  CHECK(winnersOf(path) == 2);
}

TEST_CASE("[10] a store that is open does not write to a file that was removed, renamed or replaced") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", moved = folder / "b.db";
  for (const char *what : {"removed", "renamed", "replaced"}) {
    CAPTURE(what);
    for (const std::string &name : {path, moved})
      for (const char *suffix : {"", "-wal", "-shm"})
        fs::remove(name + suffix);
    makeStore(path);
    Store store = openStore(path, writing());
    if (what == std::string("removed"))
      fs::remove(path);
    else
      fs::rename(path, moved);
    if (what == std::string("replaced"))
      fs::copy_file(moved, path);
    checkRefused(publish(store, "k2", 2), "was removed, renamed or replaced since it was opened");
  }
}

TEST_CASE("[10] a symbolic link is no second name: rows that are written by it are seen by the file's own") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", link = folder / "b.db";
  makeStore(path);
  fs::create_symlink("a.db", link);
  Store direct = openStore(path, writing()), linked = openStore(link, writing());
  require(publish(linked, "k2", 2));
  require(publish(direct, "k3", 3));
  CHECK(direct.counts()->winners == 3);
  CHECK(linked.counts()->winners == 3);
}

TEST_CASE("[11] times and errors that no measurement gives are neither written nor read") {
  ScratchFolder folder;
  const std::string path = folder / "a.db", other = folder / "b.db";
  Store store = openStore(path, writing());
  const KernelRecord record = someKernel("k1");
  auto ofTrial = [&](double Trial::*field, double value, const char *outcome = "measured") {
    Trial trial = someTrial("block_m=64");
    trial.outcome = outcome;
    trial.*field = value;
    return store.recordTrial(trial);
  };
  for (const double time : {HUGE_VAL, -HUGE_VAL, double(NAN), 0.0, -1.0, 1e-300, 0.05, 1e12}) {
    CAPTURE(time);
    CHECK(ofTrial(&Trial::medianUs, time).code() == StatusCode::invalidArgument);
    Winner winner = someWinner(record);
    winner.medianUs = time;
    CHECK(store.publish(record, winner).isOk() == (time == 0)); // not measured
  }
  const Status said = ofTrial(&Trial::medianUs, HUGE_VAL);
  CHECK(said.message() ==
        "record trial 'block_m=64': measured, median_us: expected a time of 0.1 us to a day, got inf");
  for (const double error : {HUGE_VAL, double(NAN), -0.5, 1e9})
    for (const char *outcome : {"measured", "stopped"})
      CHECK(ofTrial(&Trial::maxError, error, outcome).code() == StatusCode::invalidArgument);
  CHECK(ofTrial(&Trial::minUs, double(NAN)).code() == StatusCode::invalidArgument);
  CHECK(ofTrial(&Trial::compileSeconds, HUGE_VAL).code() == StatusCode::invalidArgument);
  CHECK(ofTrial(&Trial::powerWatts, -1).code() == StatusCode::invalidArgument);
  CHECK(store.allTrials()->empty());
  require(ofTrial(&Trial::maxError, HUGE_VAL, "wrong"));

  // Rows whose checksums are right, as another program may write them.
  Trial forged = someTrial("block_m=128", HUGE_VAL);
  runSql(path, "UPDATE trials SET config = 'block_m=128', config_digest = '" + forged.configDigest +
                   "', outcome = 'measured', max_error = 0.0, median_us = 9e999, created_unix = 0, checksum = '" +
                   fieldDigest(forged) + "'");
  const Result<std::vector<Trial>> read = store.allTrials();
  CHECK(read.status().code() == StatusCode::corrupt);
  CHECK_MESSAGE(read.status().message().find(
                    "row 1 of trials: median_us: expected a time of 0.1 us to a day, got inf") != std::string::npos,
                read.status().message());
  REQUIRE(store.verify()->problems.size() == 1);
  CHECK(openStore(other, writing()).merge({path}).status().code() == StatusCode::corrupt);
  CHECK(openStore(other, {}).counts()->total() == 0);
}
