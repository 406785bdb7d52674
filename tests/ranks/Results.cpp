//===- Results.cpp - calls over ranks against one call ----------------------------------------===//
#include "Tests.h"

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

// Twice in one group and once in another: the same bits.
Result<std::string> runCase(Scene &scene, int ranks, Kernels &kernels, const TestOptions &options) {
  HEDDLE_ASSIGN(const heddle_group_plan *plan, scene.plan(ranks));
  const std::vector<Attempt> attempts = {{&scene, plan}};
  Team team(ranks, attempts, kernels, options.team());
  const std::vector<int> all = Team::firstOf(ranks);
  if (const Reply alone = team.order(0, "alone 0"); !alone.isOk())
    return "one call: " + alone.words;
  Bytes first;
  for (const char *verb : {"join", "call", "call", "leave", "try"}) {
    const bool isMeeting = verb == std::string("join") || verb == std::string("try");
    scene.spoil(scene.tensors);
    const std::vector<Reply> replies =
        isMeeting ? team.meet(all, verb, 0)
                  : team.order(all, std::vector<std::string>(all.size(), std::string(verb) + " 0"));
    if (verb == std::string("join") || verb == std::string("leave")) {
      for (const Reply &reply : replies)
        if (!reply.isOk())
          return std::string(verb) + ": " + reply.words;
      continue;
    }
    std::string wrong = wrongIn(scene, *plan, replies, scene.expected, options.tolerance());
    if (wrong.empty() && !first.empty())
      wrong = wrongIn(scene, *plan, replies, first, {});
    if (!wrong.empty())
      return std::string(verb) + ": " + wrong;
    if (first.empty()) {
      first = scene.share(scene.spec.rows);
      for (size_t i = 0; i < kFields.size(); ++i)
        std::copy_n(scene.tensors[i], scene.bytesOf(kFields[i], scene.spec.rows), first[i]);
    }
  }
  for (uint8_t *field : first)
    delete[] field;
  return std::string();
}

} // namespace

int testResults(const TestOptions &options) {
  Verdict verdict;
  Kernels kernels(options.folder);
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
  for (const auto &scene : scenes) {
    const auto wrong = runCase(*scene, options.most, kernels, options);
    verdict.say(scene->spec.name() + " ranks=" + std::to_string(options.most),
                wrong ? *wrong : wrong.status().message());
  }
  return verdict.failures();
}

} // namespace heddle::ranks
