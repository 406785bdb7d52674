//===- Threads.cpp - failures of ranks that are threads -------------------------------------------===//
// A rank fails at the n-th of its calls into transport or processors: it leaves with a reason, ends without one, has a launch that
// is refused, or does nothing more. Everybody else has an answer that names it, reads what it read before, and computes the call
// with one rank less.
#include "Clock.h"
#include "Standstill.h"
#include "Tests.h"

#include "compiler/Library/HostShard.h"
#include "runtime/Api/GroupHandles.h"
#include "runtime/Distributed/LocalTransport.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <future>
#include <random>
#include <thread>

namespace heddle::ranks {
namespace {

enum class Failure { leaves, ends, isRefused, hangs };
constexpr const char *kWords[] = {"leaves", "ends", "is refused", "hangs"};

struct Fault {
  int ranks, victim;
  Failure failure;
  int64_t last; // its call
};

// Where the failing rank waits until the others are done.
struct Rest {
  std::promise<void> over;
  std::shared_future<void> isOver = over.get_future().share();
  std::atomic<bool> hasBegun{false};
};

class FailingRank {
public:
  FailingRank(std::unique_ptr<Transport> &transport, const Fault *fault, Rest &rest)
      : transport(transport), fault(fault), rest(rest), numbers(board().ranks[transport->rank()]) {
    numbers.points = numbers.polls = 0;
    countQuestions(&numbers);
  }
  ~FailingRank() { countQuestions(nullptr); }
  // The rank's calls pass by here.
  Status pass(bool isLaunch) {
    ++made, ++numbers.points;
    if (!fault || made < fault->last || hasFailed || (fault->failure == Failure::isRefused && !isLaunch))
      return {};
    hasFailed = true;
    if (fault->failure == Failure::isRefused)
      return Status::internal("the processor is on fire");
    if (fault->failure == Failure::leaves)
      transport->abort("it was told to");
    if (fault->failure == Failure::ends)
      transport.reset();
    if (fault->failure == Failure::hangs)
      rest.hasBegun = true, rest.isOver.wait();
    return Status::internal("it has failed");
  }
  int64_t calls() const { return made; }

private:
  std::unique_ptr<Transport> &transport;
  const Fault *fault;
  Rest &rest;
  RankNumbers &numbers;
  int64_t made = 0;
  bool hasFailed = false;
};

class WatchedTransport : public Transport {
public:
  WatchedTransport(std::unique_ptr<Transport> &inner, FailingRank &watch)
      : inner(inner), watch(watch), own(inner->rank()), all(inner->ranks()) {}
  int32_t rank() const override { return own; }
  int32_t ranks() const override { return all; }
  Result<std::vector<std::string>> gather(const std::string &mine) override {
    HEDDLE_TRY(watch.pass(false));
    return inner->gather(mine);
  }
  Status exchange(const Exchange &step, void *stream) override {
    HEDDLE_TRY(watch.pass(false));
    return inner->exchange(step, stream);
  }
  Status wait(void *stream) override { return inner->wait(stream); }
  void abort(const std::string &why) override {
    if (inner)
      inner->abort(why);
  }

private:
  std::unique_ptr<Transport> &inner;
  FailingRank &watch;
  int32_t own, all;
};

class WatchedShard : public HostShard {
public:
  WatchedShard(const Scene &scene, FailingRank &watch) : HostShard(scene.part->pattern, 1), watch(watch) {}
  Status clear(void *address, uint64_t bytes, Queue queue) override {
    HEDDLE_TRY(watch.pass(false));
    return HostShard::clear(address, bytes, queue);
  }
  Status copy(const RowCopy &copy, Queue queue) override {
    HEDDLE_TRY(watch.pass(false));
    return HostShard::copy(copy, queue);
  }
  Status launch(const KindText &kind, const heddle_attention_args &args, Queue queue) override {
    HEDDLE_TRY(watch.pass(true));
    return HostShard::launch(kind, args, queue);
  }

private:
  FailingRank &watch;
};

struct ThreadResult {
  Status status;
  bool isIntact = true;
  int64_t calls = 0;
};

// Forward and gradients of one rank; results into `got`.
ThreadResult runRank(Scene &scene, const heddle_group_plan &plan, std::unique_ptr<Transport> transport,
                     const Fault *fault, Rest &rest, const Bytes &got) {
  FailingRank watch(transport, fault, rest);
  WatchedTransport watched(transport, watch);
  WatchedShard shard(scene, watch);
  const int rank = watched.rank();
  const int64_t rows = scene.rowsOf(plan, rank);
  const Bytes own = scene.share(rows), before = scene.share(rows);
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (!kFields[i].isResult)
      scene.moveRows(plan, rank, i, scene.tensors[i], own[i], /*isToWhole=*/false);
    std::memcpy(before[i], own[i], scene.bytesOf(kFields[i], rows));
  }
  ThreadResult result;
  Agreements agreed;
  for (bool isBackward : {false, true}) {
    if (!result.status.isOk())
      break;
    const Kind kind = *Kind::parse(isBackward ? "backward" : "forward");
    GroupRequest request{*plan.plan, plan.digests, kind, CallElements(*dtypeOfCode(scene.spec.dtype)),
                         scene.arguments({own.begin(), own.end()}, rows, isBackward)};
    const auto bytes = groupWorkspace(request, rank, shard);
    std::vector<char> workspace(bytes ? *bytes + 256 : 0);
    request.args.workspace = workspace.data() + 256 - reinterpret_cast<uintptr_t>(workspace.data()) % 256;
    request.args.workspace_bytes = bytes ? *bytes : 0;
    result.status = runGroupCall(request, watched, shard, agreed);
  }
  result.calls = watch.calls();
  for (size_t i = 0; i < kFields.size(); ++i) {
    const size_t bytes = scene.bytesOf(kFields[i], rows);
    result.isIntact = result.isIntact && (kFields[i].isResult || std::memcmp(own[i], before[i], bytes) == 0);
    if (result.status.isOk() && kFields[i].isResult)
      scene.moveRows(plan, rank, i, got[i], own[i], /*isToWhole=*/true);
    delete[] own[i];
    delete[] before[i];
  }
  return result;
}

std::vector<ThreadResult> runGroup(Scene &scene, const heddle_group_plan &plan, const Fault *fault, const Bytes &got) {
  const int ranks = plan.plan->ranks();
  std::vector<std::unique_ptr<Transport>> transports = localTransports(ranks);
  Rest rest;
  std::vector<std::future<ThreadResult>> running;
  for (int rank = 0; rank < ranks; ++rank)
    running.push_back(std::async(std::launch::async, [&, rank] {
      return runRank(scene, plan, std::move(transports[size_t(rank)]), fault && fault->victim == rank ? fault : nullptr,
                     rest, got);
    }));
  auto isDone = [&](int rank) {
    return running[size_t(rank)].wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  Standstill standstill;
  for (;;) {
    std::vector<int> pending;
    for (int rank = 0; rank < ranks; ++rank)
      if ((!fault || fault->victim != rank) && !isDone(rank))
        pending.push_back(rank);
    if (pending.empty())
      break;
    std::vector<int> alive = pending; // the failing one too, as long as it does
    if (fault && !rest.hasBegun && !isDone(fault->victim))
      alive.push_back(fault->victim);
    standstill.look(alive);
    std::this_thread::yield();
  }
  rest.over.set_value();
  std::vector<ThreadResult> results;
  for (std::future<ThreadResult> &each : running)
    results.push_back(each.get());
  return results;
}

class Faults {
public:
  explicit Faults(const TestOptions &options) : options(options) {}
  Status prepare();
  Fault draw(std::mt19937 &dice);
  std::string run(const Fault &fault);

private:
  std::string runFewer(int ranks);
  std::string wrongWith(const Fault &fault, int rank, const ThreadResult &result, const Bytes &got);

  const TestOptions &options;
  std::unique_ptr<Scene> scene;
  std::map<int, std::vector<int64_t>> calls; // of every rank of a group of so many
};

Status Faults::prepare() {
  SceneSpec spec;
  spec.pattern = "causal", spec.layout = "zigzag", spec.form = "ring", spec.rows = 43, spec.dtype = HEDDLE_BF16;
  HEDDLE_ASSIGN(scene, Scene::make(spec));
  for (int ranks = 1; ranks <= options.most; ++ranks) {
    HEDDLE_ASSIGN(const heddle_group_plan *plan, scene->plan(ranks));
    const Bytes got = ranks == 1 ? scene->expected : scene->share(spec.rows);
    for (const ThreadResult &result : runGroup(*scene, *plan, nullptr, got)) {
      HEDDLE_TRY(result.status);
      calls[ranks].push_back(result.calls);
    }
  }
  return {};
}

Fault Faults::draw(std::mt19937 &dice) {
  auto below = [&](int64_t count) { return int64_t(dice() % uint64_t(count)); };
  Fault fault = {};
  fault.ranks = 2 + int(below(options.most - 1));
  fault.victim = int(below(fault.ranks));
  fault.failure = Failure(below(4));
  fault.last = 1 + below(calls[fault.ranks][size_t(fault.victim)]);
  return fault;
}

std::string Faults::wrongWith(const Fault &fault, int rank, const ThreadResult &result, const Bytes &got) {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  if (!result.isIntact)
    return who + "what it reads has changed";
  if (result.status.isOk()) {
    const std::string wrong =
        scene->difference(**scene->plan(fault.ranks), rank, got, scene->expected, options.tolerance());
    return wrong.empty() ? "" : who + wrong;
  }
  const std::string victim = "rank " + std::to_string(fault.victim), words = result.status.message();
  const bool isNamed = words.find(fault.failure == Failure::hangs ? "waited 30 s for " + victim : victim + " left: ") !=
                       std::string::npos;
  return result.status.code() == StatusCode::unavailable && isNamed ? ""
                                                                    : who + "it does not name " + victim + ": " + words;
}

std::string Faults::runFewer(int ranks) {
  const heddle_group_plan &plan = **scene->plan(ranks);
  const Bytes got = scene->share(scene->spec.rows);
  scene->spoil(got);
  std::string wrong;
  const std::vector<ThreadResult> results = runGroup(*scene, plan, nullptr, got);
  for (int rank = 0; rank < ranks && wrong.empty(); ++rank)
    wrong = results[size_t(rank)].status.isOk()
                ? scene->difference(plan, rank, got, scene->expected, options.tolerance())
                : results[size_t(rank)].status.message();
  for (uint8_t *field : got)
    delete[] field;
  return wrong.empty() ? "" : "those that are left: " + wrong;
}

std::string Faults::run(const Fault &fault) {
  const Bytes got = scene->share(scene->spec.rows);
  scene->spoil(got);
  const std::vector<ThreadResult> results = runGroup(*scene, **scene->plan(fault.ranks), &fault, got);
  std::string wrong;
  for (int rank = 0; rank < fault.ranks && wrong.empty(); ++rank)
    if (rank != fault.victim)
      wrong = wrongWith(fault, rank, results[size_t(rank)], got);
  if (wrong.empty() && results[size_t(fault.victim)].status.isOk() && fault.failure != Failure::isRefused)
    wrong = "it did not fail";
  for (uint8_t *field : got)
    delete[] field;
  return wrong.empty() ? runFewer(fault.ranks - 1) : wrong;
}

} // namespace

int testThreads(const TestOptions &options) {
  Verdict verdict;
  Faults faults(options);
  standStill();
  if (const Status prepared = faults.prepare(); !prepared.isOk()) {
    verdict.say("threads", prepared.message());
    return verdict.failures();
  }
  std::mt19937 dice(options.seed);
  for (int number = 0; number < options.count; ++number) {
    const Fault fault = faults.draw(dice);
    const std::string wrong = faults.run(fault);
    verdict.count("rank " + std::to_string(fault.victim) + " of " + std::to_string(fault.ranks) + " " +
                      kWords[int(fault.failure)] + " at call " + std::to_string(fault.last),
                  wrong);
  }
  if (verdict.failures() == 0)
    std::printf("ok %d failures of threads: everybody else had an answer and went on\n", options.count);
  return verdict.failures();
}

} // namespace heddle::ranks
