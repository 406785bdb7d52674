//===- store_merge_test.cpp - merging, exporting and comparing databases ----===//
// The laws of merging hold on random stores, compared by contents; what is refused leaves no trace.
#include "runtime/Store/Store.h"
#include "store_contents.h"
#include "store_sql.h"

#include <map>
#include <sys/resource.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// Rounds of random stores; HEDDLE_TEST_ALL=1 makes more.
const int kRounds = std::getenv("HEDDLE_TEST_ALL") ? 100 : 12;

// Stores a, b and c of one round, and new files that hold what is merged from others.
class Round {
public:
  explicit Round(int number) {
    for (int i = 0; i < 3; ++i)
      makeRandomStore(folder / std::string(1, char('a' + i)), uint32_t(100 * number + i + 1));
  }
  std::string a() const { return folder / "a"; }
  std::string b() const { return folder / "b"; }
  std::string c() const { return folder / "c"; }
  // A new file with everything of `first`, and then of each of the others.
  std::string merged(const std::string &first, const std::vector<std::string> &others) {
    std::string path = folder / ("m" + std::to_string(++count));
    std::filesystem::copy_file(first, path);
    Store store = openStore(path, writing());
    for (const std::string &other : others)
      require(store.merge({other}));
    require(store.finalise());
    return path;
  }
  ScratchFolder folder;

private:
  int count = 0;
};

std::string digestOf(const Winner &winner) { return fieldDigest(static_cast<const WinnerKey &>(winner)); }

MergeReport mergeOne(Store &into, const std::string &path) { return require(into.merge({path})).at(0); }

std::vector<std::string> filesIn(const ScratchFolder &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace

TEST_CASE("merging is commutative, associative and idempotent") {
  for (int number = 0; number < kRounds; ++number) {
    CAPTURE(number);
    Round round(number);
    std::string ab = round.merged(round.a(), {round.b()}), bc = round.merged(round.b(), {round.c()});
    CHECK(contentsOf(ab) == contentsOf(round.merged(round.b(), {round.a()})));
    CHECK(contentsOf(round.merged(ab, {round.c()})) == contentsOf(round.merged(round.a(), {bc})));
    CHECK(contentsOf(round.merged(ab, {round.b()})) == contentsOf(ab));
    CHECK(contentsOf(round.merged(ab, {round.a()})) == contentsOf(ab));
    std::filesystem::copy_file(round.a(), round.folder / "copy");
    CHECK(contentsOf(round.merged(round.a(), {round.folder / "copy"})) == contentsOf(round.a()));
    openStore(round.folder / "empty", writing());
    CHECK(contentsOf(round.merged(round.a(), {round.folder / "empty"})) == contentsOf(round.a()));
    CHECK(openStore(ab, {}).verify()->problems.empty());
  }
}

TEST_CASE("a merge keeps the best of each key and loses none") {
  for (int number = 0; number < kRounds; ++number) {
    CAPTURE(number);
    Round round(number);
    std::map<std::string, double> best; // tuned and measured only
    std::map<std::string, int64_t> newestTrial;
    for (const std::string &path : {round.a(), round.b(), round.c()}) {
      Store store = openStore(path, {});
      for (const Winner &winner : require(store.winners())) {
        auto [entry, isNew] = best.emplace(digestOf(winner), INFINITY);
        if (winner.isTuned && winner.medianUs > 0)
          entry->second = std::min(entry->second, winner.medianUs);
      }
      for (const Trial &trial : require(store.allTrials())) {
        int64_t &newest = newestTrial[Trial::sessionKey(trial) + trial.configDigest];
        newest = std::max(newest, trial.createdUnix);
      }
    }
    Store all = openStore(round.merged(round.a(), {round.b(), round.c()}), {});
    std::vector<Winner> winners = require(all.winners());
    CHECK(winners.size() == best.size());
    for (const Winner &winner : winners)
      if (std::isfinite(best.at(digestOf(winner))))
        CHECK(winner.medianUs == best.at(digestOf(winner)));
    std::vector<Trial> trials = require(all.allTrials());
    CHECK(trials.size() == newestTrial.size());
    for (const Trial &trial : trials)
      CHECK(trial.createdUnix == newestTrial.at(Trial::sessionKey(trial) + trial.configDigest));
  }
}

TEST_CASE("several sources at once are as good as one after another, and a preview tells what happens") {
  for (int number = 0; number < kRounds; ++number) {
    CAPTURE(number);
    Round round(number);
    std::string path = round.folder / "at-once";
    std::filesystem::copy_file(round.a(), path);
    MergeReport preview = require(Store::previewMerge(path, {round.b()})).at(0);
    CHECK(contentsOf(path) == contentsOf(round.a()));
    Store store = openStore(path, writing());
    std::vector<MergeReport> reports = require(store.merge({round.b(), round.c()}));
    CHECK(contentsOf(store) == contentsOf(round.merged(round.a(), {round.b(), round.c()})));
    REQUIRE(reports.size() == 2);
    CHECK(reports[0].added.total() == preview.added.total());
    CHECK(reports[0].replaced.total() == preview.replaced.total());
    CHECK(reports[0].winners.size() == preview.winners.size());
    CHECK(reports[0].names.size() == preview.names.size());
    CHECK(mergeOne(store, round.b()).isEmpty());
    CHECK(require(Store::previewMerge(path, {round.c()})).at(0).isEmpty());
    MergeReport fresh = require(Store::previewMerge(round.folder / "none", {round.c()})).at(0);
    CHECK(fresh.added.total() == require(openStore(round.c(), {}).counts()).total());
    CHECK(fresh.replaced.total() == 0);
    CHECK(!std::filesystem::exists(round.folder / "none"));
  }
}

TEST_CASE("a merge goes into a file without bytes as into none") {
  ScratchFolder folder;
  {
    Store store = openStore(folder / "from", writing());
    require(store.publish(someKernel("k1"), someWinner(someKernel("k1"))));
  }
  writeFile(folder / "into", "");
  CHECK(require(Store::previewMerge(folder / "into", {folder / "from"})).at(0).added.winners == 1);
  CHECK(readFile(folder / "into").empty());
  Store into = openStore(folder / "into", writing());
  require(into.merge({folder / "from"}));
  CHECK(into.counts()->winners == 1);
}

TEST_CASE("more sources than a process may open are merged") {
  Round round(0);
  constexpr int kSources = 60, kDescriptors = 40;
  std::vector<std::string> sources;
  for (int i = 0; i < kSources; ++i) {
    sources.push_back(round.folder / ("s" + std::to_string(i)));
    std::filesystem::copy_file(round.b(), sources.back());
  }
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few = {kDescriptors, before.rlim_max};
  Store target = openStore(round.merged(round.a(), {}), writing());
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto reports = target.merge(sources);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_MESSAGE(reports.isOk(), reports.status().message());
  CHECK(reports->size() == size_t(kSources));
  CHECK(contentsOf(target.path()) == contentsOf(round.merged(round.a(), {round.b()})));
}

TEST_CASE("an export holds what is meant, and everything comes back by merging it") {
  for (int number = 0; number < kRounds; ++number) {
    CAPTURE(number);
    Round round(number);
    Store store = openStore(round.a(), {});
    RowFilter everything, one;
    Result<StoreCounts> written = store.exportTo(round.folder / "out", everything);
    bool isEmpty = require(store.winners()).empty() && require(store.allTrials()).empty();
    CHECK(written.isOk() == !isEmpty);
    if (isEmpty)
      continue;
    Store out = openStore(round.folder / "out", {});
    CHECK(linesOf("", require(out.winners())) == linesOf("", require(store.winners())));
    CHECK(linesOf("", require(out.allTrials())) == linesOf("", require(store.allTrials())));
    CHECK(require(out.counts()).total() == written->total());
    CHECK(out.verify()->problems.empty());
    for (const KernelSummary &kernel : require(out.kernels()))
      CHECK(kernel.winnerCount > 0);
    CHECK(contentsOf(round.merged(round.a(), {round.folder / "out"})) == contentsOf(round.a()));

    one.patterns = {"pattern-1"};
    one.onlyTuned = true;
    one.hasTrials = false;
    Result<StoreCounts> fewer = store.exportTo(round.folder / "one", one);
    if (!fewer) {
      CHECK(fewer.status().code() == StatusCode::notFound);
      continue;
    }
    Store few = openStore(round.folder / "one", {});
    CHECK(require(few.counts()).trials == 0);
    for (const Winner &winner : require(few.winners()))
      CHECK((winner.pattern == "pattern-1" && winner.isTuned));
    for (const NameRecord &name : require(few.names()))
      CHECK(name.pattern == "pattern-1");
  }
}

TEST_CASE("every condition of an export counts") {
  Winner winner = someWinner(someKernel("k1"));
  RowFilter filter;
  CHECK(filter.accepts(winner));
  filter.patterns = {"x", winner.pattern};
  filter.kinds = {"forward"};
  filter.archs = {winner.arch};
  filter.deviceNames = {winner.deviceName};
  filter.generators = {"g1"};
  filter.dtypes = {DType::bf16};
  filter.headDims = {128, 64};
  CHECK(filter.accepts(winner));
  for (int field = 0; field < 7; ++field) {
    RowFilter other = filter;
    std::vector<std::string> *lists[] = {&other.patterns, &other.kinds, &other.archs, &other.deviceNames,
                                         &other.generators};
    if (field < 5)
      *lists[field] = {"x"};
    if (field == 5)
      other.dtypes = {DType::fp16};
    if (field == 6)
      other.headDims = {128};
    CHECK(!other.accepts(winner));
  }
}

TEST_CASE("a merge reports rows added and replaced, and leaves the other file alone") {
  ScratchFolder folder;
  Store ours = openStore(folder / "ours.db", writing());
  KernelRecord slow = someKernel("slow"), fast = someKernel("fast"), only = someKernel("only");
  Winner slowWinner = someWinner(slow), fastWinner = someWinner(fast);
  slowWinner.medianUs = 20;
  fastWinner.medianUs = 10;
  require(ours.publish(slow, slowWinner));
  {
    Store theirs = openStore(folder / "theirs.db", writing());
    require(theirs.publish(fast, fastWinner));
    require(theirs.publish(only, someWinner(only, {9, 9, 1})));
    require(theirs.setName({"causal", "digest-1", "", 0}));
    require(theirs.finalise());
  }
  std::string before = readFile(folder / "theirs.db");
  MergeReport report = mergeOne(ours, folder / "theirs.db");
  CHECK(report.added.kernels == 2);
  CHECK(report.added.winners == 1);
  CHECK(report.replaced.winners == 1);
  CHECK(report.added.names == 1);
  REQUIRE(report.winners.size() == 2);
  for (const WinnerChange &change : report.winners)
    CHECK((change.ours ? change.ours->medianUs : 0) == (change.theirs.contentKey == "fast" ? 20 : 0));
  CHECK(ours.lookup(WinnerKey(someFamily(), {3, 2, 1}, someDevice()))->record.contentKey == "fast");
  CHECK(readFile(folder / "theirs.db") == before);
  CHECK(require(openStore(folder / "theirs.db", {}).winners()).size() == 2);
  slowWinner.medianUs = 30;
  require(ours.publish(slow, slowWinner));
  CHECK(mergeOne(ours, folder / "theirs.db").replaced.winners == 1);
}

TEST_CASE("merging keeps the winner of every problem, whichever is faster") {
  ScratchFolder folder;
  auto winnerOf = [](const KernelRecord &record, int64_t seqlen, double us) {
    Winner winner = someWinner(record);
    static_cast<ExactProblem &>(winner) = {1, 16, 16, seqlen, seqlen};
    winner.medianUs = us;
    return winner;
  };
  KernelRecord small = someKernel("small"), large = someKernel("large");
  Store ours = openStore(folder / "ours.db", writing());
  require(ours.publish(large, winnerOf(large, 12288, 90)));
  {
    Store theirs = openStore(folder / "theirs.db", writing());
    require(theirs.publish(small, winnerOf(small, 10240, 60)));
    require(theirs.finalise());
  }
  CHECK(mergeOne(ours, folder / "theirs.db").replaced.winners == 0);
  CHECK(require(ours.winners()).size() == 2);
  LookupQuery query(WinnerKey(someFamily(), {3, 2, 1}, someDevice(), {1, 16, 16, 12288, 12288}));
  CHECK(require(ours.lookup(query)).record.contentKey == "large");
}

TEST_CASE("a merge that fails changes nothing") {
  ScratchFolder folder;
  makeRandomStore(folder / "good", 7);
  makeRandomStore(folder / "into", 8);
  std::filesystem::create_symlink(folder / "good", folder / "link");
  {
    Store bad = openStore(folder / "swapped", writing());
    KernelRecord record = someKernel("k8"), other = someKernel("k9");
    require(bad.publish(record, someWinner(record)));
    require(bad.publish(other, someWinner(other, {8, 8, 1})));
    require(bad.finalise());
  }
  std::filesystem::copy_file(folder / "swapped", folder / "orphan");
  std::filesystem::copy_file(folder / "swapped", folder / "no-plan");
  runSql(folder / "swapped",
         "UPDATE kernels SET cubin = (SELECT cubin FROM kernels WHERE content_key = 'k9') WHERE content_key = 'k8'");
  runSql(folder / "orphan", "PRAGMA foreign_keys = OFF; DELETE FROM kernels WHERE content_key = 'k9'");
  KernelRecord broken = someKernel("k9");
  broken.plan = "no plan";
  runSql(folder / "no-plan",
         "UPDATE kernels SET plan = 'no plan', checksum = '" + fieldDigest(broken) + "' WHERE content_key = 'k9'");
  writeFile(folder / "text", std::string(500, 'x'));

  struct Case {
    std::vector<std::string> names;
    StatusCode code;
    const char *says;
  };
  for (const Case &bad : {Case{{"good", "swapped"}, StatusCode::corrupt, "k8 does not match its checksum"},
                          Case{{"good", "orphan"}, StatusCode::corrupt, "names a kernel that is not there"},
                          Case{{"good", "no-plan"}, StatusCode::corrupt, "kernel k9: "},
                          Case{{"good", "text"}, StatusCode::corrupt, "not a store"},
                          Case{{"good", "none"}, StatusCode::notFound, "there is no such file"},
                          Case{{"good", "into"}, StatusCode::invalidArgument, "another file than the one merged into"},
                          Case{{"good", "good"}, StatusCode::invalidArgument, "given twice"},
                          Case{{"good", "link"}, StatusCode::invalidArgument, "given twice, also as '"}}) {
    CAPTURE(bad.says);
    std::string before = contentsOf(folder / "into");
    std::vector<std::string> paths;
    for (const std::string &name : bad.names)
      paths.push_back(folder / name);
    Store into = openStore(folder / "into", writing());
    Status status = into.merge(paths).status();
    CHECK(status.code() == bad.code);
    CHECK_MESSAGE(status.message().find(bad.says) != std::string::npos, status.message());
    CHECK(contentsOf(into) == before);
    CHECK(Store::previewMerge(folder / "into", paths).status().message() == status.message());
  }
  CHECK(Store::previewMerge(folder / "fresh", {folder / "swapped"}).status().code() == StatusCode::corrupt);
  CHECK(!std::filesystem::exists(folder / "fresh"));
  Store reader = openStore(folder / "into", {});
  CHECK(reader.merge({folder / "good"}).status().code() == StatusCode::denied);
}

TEST_CASE("an export that fails leaves no file") {
  ScratchFolder folder;
  std::filesystem::create_directory(folder / "in");
  {
    Store store = openStore(folder / "in/db", writing());
    KernelRecord record = someKernel("k8"), other = someKernel("k9");
    require(store.publish(record, someWinner(record)));
    require(store.publish(other, someWinner(other, {8, 8, 1})));
    require(store.finalise());
  }
  runSql(folder / "in/db",
         "UPDATE kernels SET cubin = (SELECT cubin FROM kernels WHERE content_key = 'k9') WHERE content_key = 'k8'");
  Store store = openStore(folder / "in/db", {});
  CHECK(store.exportTo(folder / "out", {}).status().code() == StatusCode::corrupt);
  RowFilter none, sound;
  none.dtypes = {DType::fp32};
  CHECK(store.exportTo(folder / "out", none).status().code() == StatusCode::notFound);
  Status noFolder = store.exportTo(folder / "no/out", {}).status();
  CHECK(noFolder.code() == StatusCode::io);
  CHECK(noFolder.message().find("no/out': cannot write in its folder") != std::string::npos);
  CHECK(filesIn(folder) == std::vector<std::string>{"in"});
  writeFile(folder / "out", "mine");
  CHECK(store.exportTo(folder / "out", {}).status().code() == StatusCode::invalidArgument);
  CHECK(readFile(folder / "out") == "mine");
  writeFile(folder / "late-wal", "");
  Status stale = store.exportTo(folder / "late", {}).status();
  CHECK(stale.message().find("late-wal' is there already") != std::string::npos);
  CHECK(filesIn(folder) == std::vector<std::string>{"in", "late-wal", "out"});
}

TEST_CASE("a difference names what only one side has and what differs") {
  for (int number = 0; number < kRounds; ++number) {
    CAPTURE(number);
    Round round(number);
    Store a = openStore(round.a(), {}), b = openStore(round.b(), {});
    StoreDiff forth = require(diffStores(a, b)), back = require(diffStores(b, a));
    CHECK(require(diffStores(a, a)).isEqual());
    CHECK(forth.winnersOnlyA.size() == back.winnersOnlyB.size());
    CHECK(forth.winnersOnlyB.size() == back.winnersOnlyA.size());
    CHECK(forth.winnersDiffer.size() == back.winnersDiffer.size());
    CHECK(forth.trialsOnlyA == back.trialsOnlyB);
    CHECK(forth.trialsDiffer == back.trialsDiffer);
    CHECK(int64_t(forth.winnersOnlyA.size() + forth.winnersDiffer.size()) + forth.winnersEqual ==
          require(a.counts()).winners);
    Store all = openStore(round.merged(round.a(), {round.b()}), {});
    StoreDiff rest = require(diffStores(a, all));
    CHECK((rest.winnersOnlyA.empty() && rest.namesOnlyA.empty() && rest.kernelsOnlyA == 0 && rest.trialsOnlyA == 0));
    CHECK(rest.winnersOnlyB.size() == forth.winnersOnlyB.size());
  }
  ScratchFolder folder;
  KernelRecord first = someKernel("k1"), second = someKernel("k2");
  second.config = "block_m=64\n";
  Winner fast = someWinner(first), slow = someWinner(second);
  slow.medianUs = 2 * fast.medianUs;
  Store a = openStore(folder / "a", writing()), b = openStore(folder / "b", writing());
  require(a.publish(first, fast));
  require(b.publish(second, slow));
  StoreDiff diff = require(diffStores(a, b));
  REQUIRE(diff.winnersDiffer.size() == 1);
  CHECK(diff.winnersDiffer[0].ratio() == 2);
  CHECK(!diff.winnersDiffer[0].isSameKernel());
  CHECK(diff.winnersDiffer[0].configB == "block_m=64\n");
  CHECK(diff.kernelsOnlyA == 1);
  CHECK(!diff.isEqual());
}
