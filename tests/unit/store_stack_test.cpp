//===- store_stack_test.cpp - the user's own database over shipped ones -----===//
// Which store answers, that nothing but the user's own is written, and that no store is passed over in silence.
#include "runtime/Store/StoreStack.h"
#include "store_contents.h"

#include <sys/stat.h>

using namespace heddle;
using namespace heddle::test;

namespace {

WinnerKey keyOf(ProblemBucket bucket = {3, 2, 1}) { return WinnerKey(someFamily(), bucket, someDevice()); }

// The user's own file and two shipped ones, filled by each test.
struct Files {
  ScratchFolder folder;
  std::string own = folder / "own.db", shipped = folder / "shipped.db", base = folder / "base.db";

  // Publishes a kernel of that name for a bucket.
  void publish(const std::string &path, const std::string &content, ProblemBucket bucket = {3, 2, 1},
               DeviceIdentity device = someDevice(), bool isTuned = true) {
    Store store = openStore(path, writing());
    KernelRecord record = someKernel(content);
    Winner winner = someWinner(record, bucket, std::move(device));
    winner.isTuned = isTuned;
    require(store.publish(record, winner));
    require(store.finalise());
  }
  StoreStack open() const {
    StoreStack stores;
    if (std::filesystem::exists(own))
      stores.add(openStore(own, {}));
    for (const std::string &path : {shipped, base})
      if (std::filesystem::exists(path))
        stores.add(require(openShipped(path)));
    return stores;
  }
  StackLookup find(const LookupQuery &query = keyOf()) const { return require(open().lookup(query)); }
};

} // namespace

TEST_CASE("the better match answers, whoever has it") {
  Files files;
  CHECK(files.open().isEmpty());
  CHECK(files.find().match == MatchKind::none);
  CHECK(files.find().path.empty());
  files.publish(files.base, "default", {0, 0, 1}, {"", "sm_90", 0, 0}, false);
  CHECK(files.find().path == files.base);
  CHECK(files.find().match == MatchKind::untunedDefault);
  files.publish(files.own, "elsewhere", {3, 2, 1}, {"Other GPU", "sm_90", 100, 80});
  CHECK(files.find().path == files.own);
  CHECK(files.find().match == MatchKind::sameArchitecture);
  files.publish(files.shipped, "far", {9, 9, 1});
  CHECK(files.find().record.contentKey == "far");
  files.publish(files.base, "near", {4, 2, 1});
  StackLookup near = files.find();
  CHECK(near.record.contentKey == "near");
  CHECK(near.match == MatchKind::nearestBucket);
  CHECK(near.path == files.base);
  files.publish(files.shipped, "exact");
  CHECK(files.find().path == files.shipped);
  CHECK(files.find().match == MatchKind::exact);
  CHECK(files.find(keyOf({9, 9, 1})).record.contentKey == "far");
}

TEST_CASE(
    "what was tuned for longer calls, whose values are turned over once, stands behind the default of shorter ones") {
  constexpr int64_t kFew = 9, kMany = 13; // of query rows
  Files files;
  const DeviceIdentity any{"", "sm_90", 0, 0};
  files.publish(files.own, "other default", {0, 0, 1, kMany}, any, false);
  CHECK(files.find(keyOf({3, 2, 1, kFew})).record.contentKey == "other default");
  files.publish(files.own, "tuned", {3, 2, 1, kMany});
  StackLookup found = files.find(keyOf({3, 2, 1, kFew}));
  CHECK(found.record.contentKey == "tuned");
  CHECK(found.match == MatchKind::untunedDefault);
  files.publish(files.base, "own default", {0, 0, 1, kFew}, any, false);
  CHECK(files.find(keyOf({3, 2, 1, kFew})).record.contentKey == "own default");
  CHECK(files.find(keyOf({3, 2, 1, kMany})).record.contentKey == "tuned");
  files.publish(files.shipped, "far", {9, 9, 1, kFew - 3}); // tuned for fewer rows
  found = files.find(keyOf({3, 2, 1, kFew}));
  CHECK(found.record.contentKey == "far");
  CHECK(found.match == MatchKind::nearestBucket);
}

TEST_CASE("of equally good matches the user's own answers, then the earlier file") {
  Files files;
  files.publish(files.base, "base");
  files.publish(files.shipped, "shipped");
  CHECK(files.find().record.contentKey == "shipped");
  files.publish(files.own, "own");
  CHECK(files.find().record.contentKey == "own");
  CHECK(files.find(keyOf({4, 2, 1})).record.contentKey == "own");
  files.publish(files.shipped, "nearer", {4, 1, 1});
  CHECK(files.find(keyOf({4, 1, 1})).record.contentKey == "nearer");
}

TEST_CASE("of winners of one bucket that of the very problem answers, whoever has it") {
  Files files;
  auto publish = [&](const std::string &path, const std::string &content, int64_t seqlen) {
    Store store = openStore(path, writing());
    KernelRecord record = someKernel(content);
    Winner winner = someWinner(record);
    static_cast<ExactProblem &>(winner) = {1, 16, 16, seqlen, seqlen};
    require(store.publish(record, winner));
    require(store.finalise());
  };
  publish(files.own, "own", 10240);
  LookupQuery query = keyOf();
  static_cast<ExactProblem &>(query) = {1, 16, 16, 12288, 12288};
  CHECK(files.find(query).record.contentKey == "own");
  CHECK(files.find(query).isForBucket);
  publish(files.shipped, "shipped", 12288);
  CHECK(files.find(query).record.contentKey == "shipped");
  CHECK_FALSE(files.find(query).isForBucket);
}

TEST_CASE("a shipped kernel that cannot run is no match") {
  Files files;
  {
    Store store = openStore(files.shipped, writing());
    KernelRecord record = someKernel("late");
    record.minDriver = 13000;
    require(store.publish(record, someWinner(record)));
    require(store.finalise());
  }
  files.publish(files.own, "default", {0, 0, 1}, {"", "sm_90", 0, 0}, false);
  CHECK(files.find(LookupQuery(keyOf(), 13000)).record.contentKey == "late");
  CHECK(files.find(LookupQuery(keyOf(), 12040)).record.contentKey == "default");
}

TEST_CASE("a name leads where the first store that knows it says") {
  Files files;
  auto name = [](const std::string &path, const char *word, const char *digest) {
    Store store = openStore(path, writing());
    require(store.setName({word, digest, "", 0}));
    require(store.finalise());
  };
  name(files.own, "mine", "d1");
  name(files.shipped, "mine", "d2");
  name(files.shipped, "causal", "d3");
  name(files.base, "causal", "d4");
  StoreStack stores = files.open();
  CHECK(require(stores.findName("mine")).pattern == "d1");
  CHECK(require(stores.findName("causal")).pattern == "d3");
  Status missing = stores.findName("full").status();
  CHECK(missing.code() == StatusCode::notFound);
  CHECK_MESSAGE(missing.message().find("own.db' and '") != std::string::npos, missing.message());
  CHECK(missing.message().find("it names mine, causal, mine, causal") != std::string::npos);
}

TEST_CASE("nothing is ever written to a shipped file, and writing goes to the user's own") {
  Files files;
  files.publish(files.shipped, "shipped");
  std::string before = readFile(files.shipped);
  Store shipped = require(openShipped(files.shipped));
  KernelRecord record = someKernel("new");
  CHECK(shipped.publish(record, someWinner(record)).code() == StatusCode::denied);
  CHECK(shipped.recordTrial(someTrial("block_m=64")).code() == StatusCode::denied);
  CHECK(shipped.setName({"a", "b", "", 0}).code() == StatusCode::denied);
  CHECK(shipped.merge({files.shipped}).status().code() != StatusCode::ok);
  files.publish(files.own, "own");
  CHECK(files.find().record.contentKey == "own");
  CHECK(readFile(files.shipped) == before);
  for (const char *suffix : {"-wal", "-shm", "-journal"})
    CHECK(!std::filesystem::exists(files.shipped + suffix));
}

TEST_CASE("a shipped file is used from a folder that cannot be written") {
  Files files;
  std::filesystem::create_directory(files.folder / "usr");
  std::string path = files.folder / "usr/kernels.db";
  files.publish(path, "shipped");
  chmod(path.c_str(), 0444);
  chmod((files.folder / "usr").c_str(), 0555);
  StoreStack stores;
  stores.add(require(openShipped(path)));
  CHECK(require(stores.lookup(keyOf())).record.contentKey == "shipped");
  chmod((files.folder / "usr").c_str(), 0755);
  CHECK(std::distance(std::filesystem::directory_iterator(files.folder / "usr"), {}) == 1);
}

TEST_CASE("a shipped file with rows in a side file is refused") {
  Files files;
  Store writer = openStore(files.shipped, writing());
  KernelRecord record = someKernel("k1");
  require(writer.publish(record, someWinner(record)));
  Status refused = openShipped(files.shipped).status();
  CHECK(refused.code() == StatusCode::invalidArgument);
  CHECK(refused.message().find("shipped.db-wal' holds rows that are not in it") != std::string::npos);
  require(writer.finalise());
  CHECK(openShipped(files.shipped).isOk());
}

TEST_CASE("a damaged store fails the lookup, above or below") {
  for (bool isOwn : {false, true}) {
    CAPTURE(isOwn);
    Files files;
    files.publish(files.own, "own-1", {isOwn ? 3 : 9, 2, 1});
    files.publish(files.shipped, "shipped-1", {isOwn ? 9 : 3, 2, 1});
    const std::string &path = isOwn ? files.own : files.shipped;
    std::string bytes = readFile(path);
    size_t at = bytes.find("11111111111111111111");
    REQUIRE(at != std::string::npos);
    bytes[at + 3] = '2';
    writeFile(path, bytes);
    Result<StackLookup> found = files.open().lookup(keyOf());
    CHECK(found.status().code() == StatusCode::corrupt);
    CHECK(found.status().message().find(path) != std::string::npos);
  }
  ScratchFolder folder;
  CHECK(openShipped(folder / "none.db").status().code() == StatusCode::notFound);
  writeFile(folder / "text.db", std::string(300, 'x'));
  CHECK(openShipped(folder / "text.db").status().code() == StatusCode::corrupt);
}
