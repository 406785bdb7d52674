//===- sweep_shard_test.cpp - shards of a sweep, killed and taken up again ------------===//
#include "compiler/Session/SweepShard.h"
#include "kill_fixture.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

using namespace heddle;
using namespace heddle::test;

namespace {

WorkPlan planOf(int problems, const std::string &rest = "") {
  std::string text = "{\"patterns\": \"a.mlir\", \"head_dims\": 64" + rest + ", \"problems\": [";
  for (int i = 1; i <= problems; ++i)
    text += std::string(i > 1 ? ", " : "") + "{\"heads\": 1, \"seqlen\": " + std::to_string(i) + "}";
  Result<WorkPlan> plan = WorkPlan::parse(text + "]}", "plan.json", "");
  REQUIRE_MESSAGE(plan.isOk(), plan.status().message());
  return plan.take();
}

SweepEntry done() {
  SweepEntry entry;
  entry.isDone = true;
  entry.medianUs = 12.5;
  return entry;
}

SweepEntry failed(const std::string &message) {
  SweepEntry entry;
  entry.message = message;
  return entry;
}

/// Counts how often each item was tuned.
struct Tunes {
  std::mutex mutex;
  std::map<std::string, int> counts;
  std::map<std::string, std::set<std::string>> devices;
  void add(const TuneItem &item, const SweepGpu &gpu) {
    const std::lock_guard<std::mutex> lock(mutex);
    ++counts[item.str()];
    devices[item.str()].insert(gpu.name);
  }
};

SweepOptions optionsFor(const std::string &folder, Shard shard = {}) {
  SweepOptions options;
  options.folder = folder;
  options.shard = shard;
  options.gpus = {{0, "One"}, {1, "Two"}};
  return options;
}

SweepResult run(const WorkPlan &plan, const SweepOptions &options) {
  Result<SweepResult> result = runShard(plan, options);
  REQUIRE_MESSAGE(result.isOk(), result.status().message());
  return result.take();
}

size_t doneIn(const std::string &folder) {
  Result<std::vector<SweepEntry>> entries = readSweep(folder);
  REQUIRE_MESSAGE(entries.isOk(), entries.status().message());
  size_t count = 0;
  for (const SweepEntry &entry : *entries)
    count += entry.isDone;
  return count;
}

} // namespace

TEST_CASE("shards cover a plan once, and another cut of it takes up what they did") {
  ScratchFolder folder;
  const WorkPlan plan = planOf(10);
  Tunes tunes;
  auto tune = [&](const TuneItem &item, const SweepGpu &gpu) {
    tunes.add(item, gpu);
    return done();
  };
  for (int64_t index : {0, 2}) {
    SweepOptions options = optionsFor(folder.path(), {index, 3});
    options.tune = tune;
    CHECK(run(plan, options).entries.size() == (index == 0 ? 4 : 3));
  }
  CHECK(doneIn(folder.path()) == 7);
  SweepOptions all = optionsFor(folder.path());
  all.tune = tune;
  std::vector<size_t> ended;
  all.progress = [&](const SweepProgress &now) { ended.push_back(now.ended); };
  const SweepResult result = run(plan, all);
  CHECK(result.items == 10);
  CHECK(result.known == 7);
  CHECK(result.entries.size() == 3);
  CHECK(ended == std::vector<size_t>{1, 2, 3});
  CHECK(tunes.counts.size() == 10);
  for (const auto &counted : tunes.counts)
    CHECK_MESSAGE(counted.second == 1, counted.first);
  CHECK(run(plan, all).entries.empty());
  CHECK(shardJournals(folder.path()).size() == 3);
}

TEST_CASE("what failed is tried again by the next run; what is done stays done") {
  ScratchFolder folder;
  const WorkPlan plan = planOf(3);
  SweepOptions options = optionsFor(folder.path());
  options.tune = [](const TuneItem &item, const SweepGpu &) {
    return item.problem.seqlenQ == 2 ? failed("no luck") : done();
  };
  SweepResult first = run(plan, options);
  CHECK(first.entries.size() == 3);
  const std::vector<SweepEntry> entries = *readSweep(folder.path());
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].message == "no luck");
  CHECK(entries[0].isDone);
  CHECK(entries[0].medianUs == 12.5);
  CHECK(entries[0].seconds >= 0);
  CHECK(entries[0].endedUnix > 1700000000);
  CHECK((entries[0].device == "One" || entries[0].device == "Two"));
  options.tune = [](const TuneItem &, const SweepGpu &) { return done(); };
  CHECK(run(plan, options).entries.size() == 1);
  CHECK(doneIn(folder.path()) == 3);
}

TEST_CASE("items for a GPU go to it, and wait where it is not there") {
  ScratchFolder folder;
  Tunes tunes;
  SweepOptions options = optionsFor(folder.path());
  options.tune = [&](const TuneItem &item, const SweepGpu &gpu) {
    tunes.add(item, gpu);
    return done();
  };
  const SweepResult result = run(planOf(4, ", \"gpus\": [\"Two\", \"Three\"]"), options);
  CHECK(result.items == 8);
  CHECK(result.elsewhere == 4);
  REQUIRE(tunes.devices.size() == 4);
  for (const auto &seen : tunes.devices)
    CHECK_MESSAGE(seen.second == std::set<std::string>{"Two"}, seen.first);
}

TEST_CASE("a journal that cannot be read is an error, not a shard that has done nothing") {
  ScratchFolder folder;
  const std::string path = folder / "shard-0-of-1.jsonl";
  std::filesystem::create_symlink("shard-0-of-1.jsonl", path);
  CHECK(readSweep(folder.path()).status().message() ==
        "cannot read journal '" + path + "': Too many levels of symbolic links");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(readSweep(folder.path()).status().message() == "cannot read journal '" + path + "': Is a directory");
  writeFile(folder / "file", "");
  CHECK(readSweep(folder / "file").status().message() ==
        "'" + (folder / "file") + "': cannot list the folder: Not a directory");
  CHECK(readSweep(folder / "none")->empty());
}

TEST_CASE("a run that is cancelled leaves its items to the next one") {
  ScratchFolder folder;
  const WorkPlan plan = planOf(20);
  std::atomic<bool> cancel{false};
  SweepOptions options = optionsFor(folder.path());
  options.cancel = &cancel;
  options.tune = [&](const TuneItem &item, const SweepGpu &) {
    if (item.problem.seqlenQ >= 5)
      cancel = true;
    return cancel ? failed("interrupted") : done();
  };
  const SweepResult result = run(plan, options);
  CHECK(result.entries.size() >= 3);
  CHECK(result.entries.size() <= 5);
  const std::vector<SweepEntry> entries = *readSweep(folder.path());
  for (const SweepEntry &entry : entries)
    CHECK(entry.isDone);
}

TEST_CASE("one process a shard, and what a journal may hold") {
  ScratchFolder folder;
  const std::string path = shardJournal(folder.path(), {});
  {
    Result<SweepJournal> journal = SweepJournal::open(path);
    REQUIRE(journal.isOk());
    SweepEntry entry = done();
    entry.item = "with \"quotes\", \xff and\nlines";
    REQUIRE(journal->append(entry).isOk());
    CHECK(SweepJournal::open(path).status().code() == StatusCode::unavailable);
    CHECK(SweepJournal::open(path).status().message().find("another process runs this shard") != std::string::npos);
  }
  const std::string whole = readFile(path);
  REQUIRE(readJournal(path)->size() == 1);
  for (size_t cut = 0; cut < whole.size(); ++cut) { // a kill within the next line
    writeFile(path, whole + whole.substr(0, cut));
    REQUIRE(readJournal(path)->size() == 1);
  }
  {
    Result<SweepJournal> journal = SweepJournal::open(path);
    REQUIRE(journal.isOk());
    REQUIRE(journal->append(done()).isOk());
  }
  CHECK(readJournal(path)->size() == 2);
  writeFile(path, "nonsense\n" + whole);
  CHECK(readJournal(path).status().message() == path + ":1: no entry of a sweep: nonsense");
  CHECK(SweepJournal::open(path).status().code() == StatusCode::corrupt);
  CHECK(readFile(path) == "nonsense\n" + whole);
  CHECK(SweepJournal::open(folder / "none/journal").status().code() == StatusCode::io);
  for (const char *wrong : {"", "1", "2/2", "-1/2", "0/0", "1/2x", "a/b", "0/2/3"})
    CHECK_MESSAGE(Shard::parse(wrong).status().message().find("expected a shard as I/N") == 0, wrong);
  CHECK(Shard::parse("7/8")->index == 7);
}

TEST_CASE("a line that a full disk cuts leaves nothing behind") {
  ScratchFolder folder;
  const std::string path = folder / "journal";
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  Result<SweepJournal> journal = SweepJournal::open(path);
  REQUIRE(journal.isOk());
  REQUIRE(journal->append(done()).isOk());
  const rlimit full = {std::filesystem::file_size(path) + 10, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  CHECK(journal->append(failed("no space")).code() == StatusCode::io);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE(journal->append(failed("later")).isOk());
  const auto entries = readJournal(path);
  REQUIRE_MESSAGE(entries.isOk(), entries.status().message());
  REQUIRE(entries->size() == 2);
  CHECK(entries->back().message == "later");
}

namespace {

/// A sweep of 24 items; its exit code.
int shortSweep(const std::string &folder) {
  SweepOptions options = optionsFor(folder);
  options.tune = [](const TuneItem &, const SweepGpu &) { return done(); };
  return runShard(planOf(24), options).isOk() ? 0 : 1;
}

} // namespace

TEST_CASE("killed at any call, a sweep ends with every item done and none written down twice") {
  std::mt19937 random(7);
  constexpr int kOfEach = 5;
  const int kills = std::getenv("HEDDLE_TEST_ALL") ? 200 : 40;
  int cutShort = 0;
  for (int begun = 0; begun < kills; begun += kOfEach) {
    ScratchFolder undisturbed, folder;
    const int64_t calls = callsOf([&] { return shortSweep(undisturbed.path()); });
    size_t before = 0;
    for (int i = 0; i < kOfEach; ++i) {
      CAPTURE(begun + i);
      killAtCall(random, calls / (kOfEach + 1), [&] { return shortSweep(folder.path()); });
      const size_t now = doneIn(folder.path());
      CHECK(now >= before);
      cutShort += now > before && now < 24;
      before = now;
    }
    CHECK(waitFor(startChild([&] { return shortSweep(folder.path()); })) == 0);
    std::map<std::string, int> times;
    const std::vector<SweepEntry> entries = *readJournal(shardJournal(folder.path(), {}));
    for (const SweepEntry &entry : entries)
      ++times[entry.item];
    CHECK(times.size() == 24);
    for (const auto &counted : times)
      CHECK_MESSAGE(counted.second == 1, counted.first);
  }
  CHECK(cutShort > 0);
}

TEST_CASE("a full disk ends a sweep with an error, and the next run goes on where a line begins") {
  ScratchFolder folder;
  const int code = waitFor(startChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {500, 500}; // within the fourth line or so
    setrlimit(RLIMIT_FSIZE, &limit);
    SweepOptions options = optionsFor(folder.path());
    options.tune = [](const TuneItem &, const SweepGpu &) { return done(); };
    const Status status = runShard(planOf(24), options).status();
    return status.code() == StatusCode::io &&
                   status.message().find("shard-0-of-1.jsonl': cannot write: ") != std::string::npos
               ? 0
               : 1;
  }));
  CHECK(code == 0);
  const std::string text = readFile(shardJournal(folder.path(), {}));
  CHECK(text.size() < 500); // what was written of the last line is taken back
  CHECK(text.back() == '\n');
  const size_t before = doneIn(folder.path());
  CHECK(before > 0);
  CHECK(shortSweep(folder.path()) == 0);
  CHECK(readJournal(shardJournal(folder.path(), {}))->size() == 24);
  CHECK(doneIn(folder.path()) == 24);
}

TEST_CASE("a folder that cannot be written is refused before anything is tuned") {
  ScratchFolder folder;
  chmod(folder.path().c_str(), 0555);
  const int code = waitFor(startChild([&] {
    if (getuid() == 0 && setuid(65534) != 0)
      return 9;
    int tuned = 0;
    SweepOptions options = optionsFor(folder.path());
    options.tune = [&](const TuneItem &, const SweepGpu &) {
      ++tuned;
      return done();
    };
    const Status status = runShard(planOf(2), options).status();
    return status.code() == StatusCode::io &&
                   status.message().find("shard-0-of-1.jsonl': cannot open: Permission denied") != std::string::npos
               ? tuned
               : 8;
  }));
  chmod(folder.path().c_str(), 0755);
  CHECK(code == 0);
}

namespace {

/// A script in place of heddle, which also notes what it is called with.
std::string playedProgram(const ScratchFolder &folder, const std::string &script) {
  const std::string program = folder / "heddle";
  writeFile(program, "#!/bin/sh\necho \"$@\" >> " + (folder / "calls") + "\necho \"$CUDA_VISIBLE_DEVICES\" >> " +
                         (folder / "devices") + "\n" + script + "\n");
  chmod(program.c_str(), 0755);
  return program;
}

/// Tunes the first item of a plan by a script in place of heddle; `runs` counts how often it was started.
struct Played {
  Played(const std::string &script, double limit = 60, const std::string &pattern = "a.mlir") {
    const TuneCommand command{
        playedProgram(folder, script), folder / "shard.db", folder.path(), {"--budget=3s"}, limit, 3};
    TuneItem item = planOf(1).tuneItems()[0];
    item.pattern.file = pattern;
    // as a sweep does, which has a thread for each GPU
    std::thread([&] { entry = tuneElsewhere(command, item, {1, "Two"}); }).join();
    calls = readFile(folder / "calls");
    runs = int(std::count(calls.begin(), calls.end(), '\n'));
  }
  ScratchFolder folder;
  SweepEntry entry;
  std::string calls;
  int runs = 0;
};

} // namespace

TEST_CASE("an item is tuned in a process of its own, on one GPU") {
  unsetenv("CUDA_VISIBLE_DEVICES");
  Played good(R"(echo noise >&2; echo '{"end": "budget", "winner": {"median_us": 41.5}}')");
  CHECK(good.entry.isDone);
  CHECK(good.entry.medianUs == 41.5);
  CHECK(good.runs == 1);
  CHECK(readFile(good.folder / "devices") == "1\n");
  CHECK(readFile(good.folder / "calls") ==
        "tune a.mlir --json --db=" + (good.folder / "shard.db") +
            " --kind=forward --dtype=bf16 --head-dim=64 --value-dim=64 --batch=1 --heads=1 "
            "--kv-heads=1 --seqlen=1 --seqlen-k=1 --budget=3s\n");
  setenv("CUDA_VISIBLE_DEVICES", "5,GPU-abc,7", 1);
  CHECK(readFile(Played("exit 0").folder / "devices") == "GPU-abc\n");
  unsetenv("CUDA_VISIBLE_DEVICES");

  Played wrong("echo 'heddle: error: no such pattern' >&2; echo 'heddle: note: look' >&2; exit 1");
  CHECK_FALSE(wrong.entry.isDone);
  CHECK(wrong.entry.message == "heddle: error: no such pattern");
  CHECK(wrong.runs == 1);
  CHECK(Played(R"(echo '{"end": "cancelled", "winner": {"median_us": 41.5}}')").entry.message == "interrupted");
  CHECK(Played("exit 0").entry.message == "the process that tunes answered no winner");
  for (const char *time : {"0", "-1", "1e-300", "1e300", "null", "\"7\""}) {
    Played odd(R"(echo '{"end": "budget", "winner": {"median_us": )" + std::string(time) + "}}'");
    CHECK_FALSE(odd.entry.isDone);
    CHECK_MESSAGE(odd.entry.message.find("median_us of the winner: expected a time of 0.1 us to a day") == 0, time);
  }

  Played lost("echo 'heddle: error: a kernel that never ends holds the GPU' >&2; exit 3");
  CHECK(lost.runs == 3);
  CHECK(lost.entry.message == "heddle: error: a kernel that never ends holds the GPU");
  Played crash("kill -SEGV $$");
  CHECK(crash.runs == 3);
  CHECK_FALSE(crash.entry.isDone);
  CHECK(crash.entry.message == "the process that tunes ended with signal 11 (Segmentation fault)");
  Played better("[ -e \"$0.once\" ] || { touch \"$0.once\"; kill -KILL $$; }\n"
                R"(echo '{"end": "budget", "winner": {"median_us": 3}}')");
  CHECK(better.entry.isDone);
  CHECK(better.runs == 2);
  Played hung("exec sleep 86400", 3);
  CHECK(hung.runs == 3);
  CHECK(hung.entry.message == "timed out: the process that tunes did not end within 3 s and was killed");
  CHECK(Played("exit 0", 60, "-a.mlir").calls.rfind("tune ./-a.mlir --json", 0) == 0);

  ScratchFolder folder;
  const SweepEntry absent = tuneElsewhere({folder / "none", folder / "shard.db", folder.path(), {}, 60, 1},
                                          planOf(1).tuneItems()[0], {0, "One"});
  CHECK(absent.message == "cannot start '" + (folder / "none") + "': No such file or directory");
}

TEST_CASE("an item that hangs is killed at its limit, and the sweep goes on") {
  ScratchFolder folder;
  const std::string pids = folder / "pids";
  const TuneCommand command{playedProgram(folder, "case \"$*\" in *--seqlen=1*) echo $$ > " + pids +
                                                      "; exec sleep 86400;; esac\n"
                                                      R"(echo '{"end": "budget", "winner": {"median_us": 3}}')"),
                            folder / "shard.db",
                            folder.path(),
                            {},
                            5,
                            1};
  SweepOptions options = optionsFor(folder.path());
  options.gpus.resize(1);
  options.tune = [&](const TuneItem &item, const SweepGpu &gpu) { return tuneElsewhere(command, item, gpu); };
  const SweepResult result = run(planOf(3), options);
  CHECK(result.entries.size() == 3);
  CHECK(doneIn(folder.path()) == 2);
  const std::vector<SweepEntry> entries = *readJournal(shardJournal(folder.path(), {}));
  REQUIRE(entries.size() == 3);
  CHECK_FALSE(entries[0].isDone);
  CHECK(entries[0].message == "timed out: the process that tunes did not end within 5 s and was killed");
  CHECK(entries[0].seconds >= 5);
  const pid_t hung = std::stoi(readFile(pids));
  CHECK(kill(hung, 0) != 0);
  CHECK(errno == ESRCH);
}
