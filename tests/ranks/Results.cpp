//===- Results.cpp - calls over ranks against one call ----------------------------------------===//
// All cases go through one group, twice each, and then through another one, so that ranks are connected two times in all. What
// they launch is compiled by all processes side by side before, each kernel by one.
#include "Tests.h"

#include <algorithm>
#include <numeric>

namespace heddle::ranks {
namespace {

std::vector<SceneSpec> casesOf(bool isOnGpus) {
  std::vector<SceneSpec> all;
  auto add = [&](const char *pattern, const char *layout, const char *form, std::vector<int64_t> sizes = {}) {
    SceneSpec &spec = all.emplace_back();
    spec.pattern = pattern, spec.layout = layout, spec.form = form, spec.sizes = std::move(sizes);
  };
  auto sized = [&](int64_t few, int64_t many) { return isOnGpus ? many : few; };
  add("causal", "zigzag", "gather");
  add("causal", "zigzag", "ring");
  add("causal", "contiguous", "ring");
  add("sliding_window", "contiguous", "gather", {sized(19, 1023)});
  add("sliding_window", "zigzag", "ring", {sized(19, 255)});
  add("longnet_base", "contiguous", "gather");
  add("longnet_base", "striped:16", "gather");
  add("dilated", "contiguous", "gather");
  add("dilated", "zigzag", "ring");
  add("longformer", "contiguous", "gather", {sized(9, 256), sized(5, 64)}); // global rows travel
  add("longformer", "zigzag", "ring", {sized(9, 256), sized(5, 64)});
  for (const char *layout : {"contiguous", "zigzag"}) {
    add("causal", layout, "ulysses");
    all.back().heads = 24, all.back().kvHeads = 12, all.back().rows = 130; // 2, 3 or 4 ranks divide them
  }
  auto addTeams = [&](const char *pattern, const char *layout, const char *form, std::vector<int64_t> sizes = {}) {
    add(pattern, layout, form, std::move(sizes));
    all.back().headRanks = 2;
  };
  addTeams("causal", "zigzag", "gather");
  addTeams("causal", "zigzag", "ring");
  addTeams("sliding_window", "contiguous", "ring", {sized(19, 1023)});
  addTeams("longformer", "contiguous", "gather", {sized(9, 256), sized(5, 64)});
  add("causal", "zigzag", "gather");
  all.back().isPlacementFree = true;
  add("longformer", "contiguous", "gather", {sized(9, 256), sized(5, 64)}); // by kernels that cut no long rows
  all.back().isPlacementFree = true;
  add("longnet_base", "zigzag", "gather"); // gradients of keys need those of other ranks
  all.back().isPlacementFree = true;
  for (int32_t dtype : {HEDDLE_BF16, HEDDLE_FP32}) { // d_q of q's type: written where it is not fp32, which is added to
    add("causal", "zigzag", "gather");
    all.back().dtype = dtype, all.back().writesQueryGradient = dtype != HEDDLE_FP32;
  }
  add("causal", "zigzag", "ring");
  all.back().dtype = HEDDLE_FP32, all.back().isTf32 = true;
  for (SceneSpec &spec : all)
    if (isOnGpus)
      spec.rows = 5003, spec.heads = 12, spec.kvHeads = 4, spec.dim = 64; // 2 or 4 GPUs divide them
  return all;
}

std::string wrongIn(Scene &scene, const heddle_group_plan &plan, const std::vector<Reply> &replies,
                    const Bytes &expected, const Tolerance &tolerance) {
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    if (!replies[rank].isOk())
      return "rank " + std::to_string(rank) + ": " + replies[rank].words +
             (replies[rank].isIntact ? "" : "; inputs changed");
    const std::string different = scene.difference(plan, int(rank), scene.tensors, expected, tolerance);
    if (!different.empty())
      return different;
  }
  return "";
}

bool areOk(const std::vector<Reply> &replies) {
  return std::all_of(replies.begin(), replies.end(), [](const Reply &reply) { return reply.isOk(); });
}

class Results {
public:
  Results(std::vector<std::unique_ptr<Scene>> of, Kernels &kernels, const TestOptions &options)
      : options(options), kernels(kernels), scenes(std::move(of)), all(Team::firstOf(options.most)) {}
  ~Results() {
    for (const Case &each : cases)
      for (uint8_t *field : each.first)
        delete[] field;
  }

  void run(Verdict &verdict) {
    if (const std::string wrong = begin(); !wrong.empty())
      return verdict.say("results", wrong);
    meet();
    for (size_t number = 0; number < cases.size(); ++number) {
      std::string wrong = call(number);
      if (wrong.empty())
        wrong = call(number);
      cases[number].isRight = wrong.empty();
      verdict.say(cases[number].name, wrong);
    }
    meet();
    for (size_t number = 0; number < cases.size(); ++number)
      if (cases[number].isRight)
        verdict.count(cases[number].name + ", in another group", call(number));
    leave();
    const Stopwatch watch(options);
    watch.say("calls over ranks", secondsOfCalls);
    watch.say("their results beside those of one", secondsOfChecks);
  }

private:
  struct Case {
    std::string name;
    Bytes first = {}; // results of the first call, whose bits all others have
    bool isRight = false;
  };

  // Plans, processes, kernels and what one call gives. "" or what went wrong.
  std::string begin() {
    Stopwatch watch(options);
    for (const auto &scene : scenes) {
      const auto plan = scene->plan(options.most);
      if (!plan)
        return scene->spec.name() + ": " + plan.status().message();
      attempts.push_back({scene.get(), *plan});
      cases.push_back({scene->spec.name() + " ranks=" + std::to_string(options.most)});
    }
    watch.say("plans");
    team = std::make_unique<Team>(options.most, attempts, kernels, options.team());
    if (const auto ready = team->order(all, std::vector<std::string>(all.size(), "ready 0")); !areOk(ready))
      return ready[0].words;
    watch.say("processes are started");
    if (const Reply reply = team->makeKernels(attempts.size()); !reply.isOk())
      return "kernels: " + reply.words;
    watch.say("kernels");
    std::vector<size_t> numbers(attempts.size());
    std::iota(numbers.begin(), numbers.end(), size_t(0));
    if (const Reply reply = team->spread("alone", numbers); !reply.isOk())
      return "alone: " + reply.words;
    watch.say("calls of one rank");
    return "";
  }

  void leave() { (void)team->order(all, std::vector<std::string>(all.size(), "leave 0")); }
  // In the place of the group that there may be.
  void meet() {
    Stopwatch watch(options);
    if (isMet)
      leave();
    team->replaceLost();
    isMet = areOk(team->meet(all, "join", 0));
    watch.say("ranks are connected");
  }

  std::string call(size_t number) {
    Scene &scene = *scenes[number];
    Case &of = cases[number];
    scene.spoil(scene.tensors);
    const Stopwatch ofCall(options);
    const std::vector<Reply> replies =
        team->order(all, std::vector<std::string>(all.size(), "call " + std::to_string(number)));
    secondsOfCalls += ofCall.seconds();
    const Stopwatch ofCheck(options);
    std::string wrong = wrongIn(scene, *attempts[number].plan, replies, scene.expected, options.tolerance());
    if (wrong.empty() && !of.first.empty())
      wrong = wrongIn(scene, *attempts[number].plan, replies, of.first, {});
    secondsOfChecks += ofCheck.seconds();
    if (!areOk(replies))
      meet(); // this group is of no more use
    if (wrong.empty() && of.first.empty()) {
      of.first = scene.share(scene.spec.rows);
      for (size_t i = 0; i < kFields.size(); ++i)
        std::copy_n(scene.tensors[i], scene.bytesOf(kFields[i], scene.spec.rows), of.first[i]);
    }
    return wrong;
  }

  const TestOptions &options;
  Kernels &kernels;
  const std::vector<std::unique_ptr<Scene>> scenes;
  const std::vector<int> all;
  std::vector<Attempt> attempts;
  std::vector<Case> cases;
  std::unique_ptr<Team> team;
  bool isMet = false;
  double secondsOfCalls = 0, secondsOfChecks = 0;
};

} // namespace

int testResults(const TestOptions &options) {
  Verdict verdict;
  Kernels kernels(options.folder);
  Stopwatch watch(options);
  std::vector<std::unique_ptr<Scene>> scenes;
  for (const SceneSpec &spec : casesOf(options.isOnGpus)) {
    if (spec.name().compare(0, options.only.size(), options.only) != 0)
      continue;
    auto scene = Scene::make(spec);
    const Status prepared = scene ? kernels.prepare(**scene) : scene.status();
    if (!prepared.isOk()) {
      verdict.say(spec.name(), prepared.message());
      continue;
    }
    scenes.push_back(scene.take());
  }
  watch.say("inputs");
  if (!scenes.empty())
    Results(std::move(scenes), kernels, options).run(verdict);
  return verdict.failures();
}

} // namespace heddle::ranks
