//===- Kills.cpp - ranks that die, and those that are left ---------------------------------------===//
// The points of a rank are counted in a run that nobody disturbs; then it dies, or stops, at one that is drawn. Everybody else has
// an answer, which names it wherever it can, reads what it read before, and computes the call with one rank less. Processes
// serve many kills, another one comes for each that is lost; on GPUs the limit is twice what a group takes that nobody
// disturbs, and another one where that came too early; groups of those that are left have what is the default.
#include "Board.h"
#include "Tests.h"

#include "runtime/Api/GroupHandles.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <random>
#include <regex>
#include <string>

namespace heddle::ranks {
namespace {

std::vector<SceneSpec> casesOf(bool isOnGpus) {
  std::vector<SceneSpec> all(4);
  all[0].pattern = all[1].pattern = "causal";
  all[0].layout = "zigzag";
  all[1].form = "ring";
  all[2].pattern = "sliding_window", all[2].sizes = {19}, all[2].layout = "striped:16";
  all[3].pattern = "causal", all[3].layout = "zigzag", all[3].form = "ring", all[3].headRanks = 2;
  for (SceneSpec &spec : all) {
    spec.rows = isOnGpus ? 3001 : 61;
    if (isOnGpus)
      spec.heads = 8, spec.kvHeads = 2, spec.dim = 64;
  }
  return all;
}

// How many points there are differs a little; and how long a group takes, where others start processes on the same GPUs.
const std::string kOver = "it was over before", kEarly = "the limit came before it died";
constexpr double kLeastLimit = 1, kMostLimit = 10; // seconds, on GPUs, of a group that loses a rank

struct Kill {
  Scene *scene;
  int ranks, victim, signal;
  int64_t last; // point
  std::string name() const {
    return scene->spec.name() + ": rank " + std::to_string(victim) + " of " + std::to_string(ranks) +
           (signal == SIGSTOP ? " stops" : " dies") + " at point " + std::to_string(last);
  }
};

class Kills {
public:
  explicit Kills(const TestOptions &options) : options(options), kernels(options.folder), dice(options.seed) {}

  // Starts processes.
  Status prepare();
  Result<Kill> draw();
  // "" or what went wrong.
  Result<std::string> run(Kill kill);
  void waitLonger() { limit = std::min(2 * limit, kMostLimit); }

private:
  // Of so many ranks; their numbers are those of orders.
  size_t attemptOf(const Scene &scene, int ranks) const {
    size_t number = 0;
    while (attempts[number].scene != &scene || attempts[number].plan->plan->ranks() != ranks)
      ++number;
    return number;
  }
  Result<std::vector<int64_t>> undisturbed(Scene &scene, int ranks);
  void setLimit(double ofKills);
  std::string wrongWithLost(const Kill &kill, const std::vector<Reply> &replies, std::vector<int> &left) const;
  std::string wrongWith(const Kill &kill, int rank, const Reply &reply, const heddle_group_plan &plan) const;

  const TestOptions &options;
  Kernels kernels;
  std::mt19937 dice;
  std::vector<std::unique_ptr<Scene>> scenes;
  std::vector<Attempt> attempts; // one rank of each scene, two ranks of each, ...
  std::unique_ptr<Team> team;
  std::map<std::pair<Scene *, int>, std::vector<int64_t>> points;
  double limit = kLeastLimit; // on GPUs, of a group that loses a rank
};

Status Kills::prepare() {
  for (const SceneSpec &spec : casesOf(options.isOnGpus)) {
    HEDDLE_ASSIGN(scenes.emplace_back(), Scene::make(spec));
    HEDDLE_TRY(kernels.prepare(*scenes.back()));
  }
  for (int ranks = 1; ranks <= options.most; ++ranks)
    for (const auto &scene : scenes) {
      HEDDLE_ASSIGN(const heddle_group_plan *plan, scene->plan(ranks));
      attempts.push_back({scene.get(), plan});
    }
  Stopwatch watch(options);
  team = std::make_unique<Team>(options.most, attempts, kernels, options.team());
  if (const Reply reply = team->makeKernels(scenes.size()); !reply.isOk())
    return Status::internal("kernels: " + reply.words);
  std::vector<size_t> numbers(scenes.size());
  std::iota(numbers.begin(), numbers.end(), size_t(0));
  if (const Reply reply = team->spread("alone", numbers); !reply.isOk())
    return Status::internal("alone: " + reply.words);
  std::string warm = "warm";
  for (size_t number : numbers)
    warm += " " + std::to_string(number);
  team->setWelcome(warm);
  setLimit(0);
  const std::vector<int> all = Team::firstOf(options.most);
  for (const Reply &reply : team->order(all, std::vector<std::string>(all.size(), warm)))
    if (!reply.isOk())
      return Status::internal("groups of one: " + reply.words);
  watch.say("processes, kernels, calls and groups of one rank");
  return {};
}

// Of every rank, how many there are.
Result<std::vector<int64_t>> Kills::undisturbed(Scene &scene, int ranks) {
  const size_t attempt = attemptOf(scene, ranks);
  const std::vector<int> all = Team::firstOf(ranks);
  if (const Reply welcome = team->replaceLost(); !welcome.isOk())
    return Status::internal("another process: " + welcome.words);
  std::vector<int64_t> before, made;
  // A process has launched such a call before, as when it is killed; GPUs, where that counts little, are not connected twice.
  for (bool isCounted : options.isOnGpus ? std::vector<bool>{true} : std::vector<bool>{false, true}) {
    scene.spoil(scene.tensors);
    Stopwatch watch(options);
    const std::vector<Reply> replies = team->meet(all, "try", attempt, [&] {
      for (int rank = 0; rank < ranks && isCounted; ++rank)
        before.push_back(board().ranks[rank].points);
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const Reply &reply = replies[size_t(rank)];
      const std::string wrong = reply.isOk() ? scene.difference(*attempts[attempt].plan, rank, scene.tensors,
                                                                scene.expected, options.tolerance())
                                             : reply.words;
      if (!wrong.empty())
        return Status::internal("undisturbed: rank " + std::to_string(rank) + ": " + wrong);
      if (isCounted)
        made.push_back(board().ranks[rank].points - before[size_t(rank)]);
    }
    limit = std::clamp(2 * watch.seconds(), limit, kMostLimit);
    watch.say("a call that nobody disturbs");
  }
  return made;
}

Result<Kill> Kills::draw() {
  auto below = [&](size_t count) { return size_t(dice() % count); };
  Kill kill = {};
  kill.scene = scenes[below(scenes.size())].get();
  kill.ranks = 2 + int(below(size_t(options.most - 1)));
  kill.victim = int(below(size_t(kill.ranks)));
  kill.signal = below(3) == 0 ? SIGSTOP : SIGKILL;
  std::vector<int64_t> &known = points[{kill.scene, kill.ranks}];
  if (known.empty()) {
    HEDDLE_ASSIGN(known, undisturbed(*kill.scene, kill.ranks));
  }
  kill.last = 1 + int64_t(below(size_t(known[size_t(kill.victim)])));
  return kill;
}

// Survivors that are not done say whom they wait for, where, and how long.
std::string Kills::wrongWith(const Kill &kill, int rank, const Reply &reply, const heddle_group_plan &plan) const {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  if (reply.end != Reply::End::answered)
    return who + "expected an answer, it " + (reply.end == Reply::End::hung ? "hangs" : reply.words);
  if (!reply.isIntact)
    return who + "what it reads has changed; " + reply.words;
  if (reply.status.isOk()) {
    const std::string wrong =
        kill.scene->difference(plan, rank, kill.scene->tensors, kill.scene->expected, options.tolerance());
    return wrong.empty() ? "" : who + wrong;
  }
  static const std::regex kJoining("join ranks: waited (\\d+ s|\\d+ ms) for all of \\d+ ranks to come.*"),
      kWaiting("(?:exchange of heads: )?(step \\d+: )?(gather|exchange|wait): waited (\\d+ s|\\d+ ms) for ranks? "
               "([0-9, ]+)( in step \\d+ of "
               "rank \\d+)?; .*"),
      kOfNccl(".*(remote process exited|unhandled system error).*");
  std::smatch match;
  if (reply.status.code() != StatusCode::unavailable)
    return who + "expected unavailable, got " + reply.words;
  if (std::regex_match(reply.words, kJoining))
    return "";
  if (options.isOnGpus && std::regex_match(reply.words, kOfNccl)) // of a connection that broke NCCL tells at once
    return "";
  if (!std::regex_match(reply.words, match, kWaiting))
    return who + "it does not say whom it waited for: " + reply.words;
  if (match[2] == "exchange" && !match[1].matched)
    return who + "it does not say in which step: " + reply.words;
  const std::string named = " " + match[4].str() + ",";
  const bool isNamed = named.find(" " + std::to_string(kill.victim) + ",") != std::string::npos;
  return isNamed || kill.ranks > 2 ? ""
                                   : who + "it does not name rank " + std::to_string(kill.victim) + ": " + reply.words;
}

// Of everybody but the victim, and who they are.
std::string Kills::wrongWithLost(const Kill &kill, const std::vector<Reply> &replies, std::vector<int> &left) const {
  const heddle_group_plan &plan = *attempts[attemptOf(*kill.scene, kill.ranks)].plan;
  const std::regex naming("join ranks|remote|system error|[ ,]" + std::to_string(kill.victim) + "[ ,;]");
  bool isNamed = false, hasFailed = false;
  for (int rank = 0; rank < kill.ranks; ++rank) {
    if (rank == kill.victim)
      continue;
    const Reply &reply = replies[size_t(rank)];
    if (std::string wrong = wrongWith(kill, rank, reply, plan); !wrong.empty())
      return wrong;
    left.push_back(rank);
    hasFailed |= !reply.status.isOk();
    isNamed |= std::regex_search(reply.words, naming);
  }
  return hasFailed && !isNamed
             ? "nobody names rank " + std::to_string(kill.victim) + ": " + replies[size_t(left[0])].words
             : "";
}

Result<std::string> Kills::run(Kill kill) {
  Scene &scene = *kill.scene;
  const size_t attempt = attemptOf(scene, kill.ranks), fewer = attemptOf(scene, kill.ranks - 1);
  Stopwatch watch(options);
  if (const Reply welcome = team->replaceLost(); !welcome.isOk())
    return "another process: " + welcome.words;
  watch.say("it has another process");
  scene.spoil(scene.tensors);
  setLimit(limit);
  std::vector<Reply> replies = team->meet(Team::firstOf(kill.ranks), "try", attempt, [&] {
    (void)team->order(kill.victim, "die " + std::to_string(kill.last) + " " + std::to_string(kill.signal));
  });
  setLimit(0);
  watch.say("everybody has an answer");
  const Reply &gone = replies[size_t(kill.victim)];
  std::vector<int> left;
  const std::string wrong = wrongWithLost(kill, replies, left);
  if (gone.end != (kill.signal == SIGSTOP ? Reply::End::stopped : Reply::End::died)) {
    (void)team->order(kill.victim, "die 0 0");
    const bool isEarly = options.isOnGpus && gone.end == Reply::End::answered && limit < kMostLimit;
    return gone.isOk() ? kOver : isEarly && wrong.empty() ? kEarly : "it lives: " + gone.words;
  }
  if (!wrong.empty())
    return wrong;
  scene.spoil(scene.tensors);
  replies = team->meet(left, "try", fewer);
  watch.say("those that are left have called");
  for (size_t rank = 0; rank < left.size(); ++rank) {
    const std::string wrong = replies[rank].isOk() ? scene.difference(*attempts[fewer].plan, int(rank), scene.tensors,
                                                                      scene.expected, options.tolerance())
                                                   : replies[rank].words;
    if (!wrong.empty())
      return "those that are left: rank " + std::to_string(rank) + ": " + wrong;
  }
  return std::string();
}

// Clocks that stand reach any limit.
void Kills::setLimit(double ofKills) {
  if (options.isOnGpus)
    team->setLimit(ofKills);
}

} // namespace

int testKills(const TestOptions &options) {
  Verdict verdict;
  Kills kills(options);
  if (const Status prepared = kills.prepare(); !prepared.isOk()) {
    verdict.say("kills", prepared.message());
    return verdict.failures();
  }
  int late = 0, early = 0;
  for (int number = 0; number < options.count; ++number) {
    auto kill = kills.draw();
    if (!kill) {
      verdict.say("kill " + std::to_string(number), kill.status().message());
      break;
    }
    Stopwatch watch(options);
    auto wrong = kills.run(*kill);
    while (wrong && ((*wrong == kOver && kill->last > 1) || *wrong == kEarly)) {
      if (*wrong == kEarly)
        ++early, kills.waitLonger();
      else
        ++late, kill->last = (kill->last + 1) / 2;
      wrong = kills.run(*kill);
    }
    verdict.count(kill->name(), wrong ? *wrong : wrong.status().message());
    watch.say(kill->name().c_str());
  }
  if (verdict.failures() == 0)
    std::printf("ok %d kills: everybody else had an answer and went on%s%s\n", options.count,
                late ? (", " + std::to_string(late) + " of them earlier than drawn").c_str() : "",
                early ? (", " + std::to_string(early) + " of them once more behind a longer limit").c_str() : "");
  return verdict.failures();
}

} // namespace heddle::ranks
