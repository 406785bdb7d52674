//===- Joins.cpp - ranks that come with something else --------------------------------------------===//
// Rank 1 of two has another thing of the table than rank 0: both are told which, nothing is sent, and nothing that is read
// changes. Then the same group makes a call that both agree on. A group for each: what it agreed on before it asks no more.
#include "Board.h"
#include "Tests.h"

#include "runtime/Api/GroupHandles.h"

namespace heddle::ranks {
namespace {

SceneSpec likeOthers() {
  SceneSpec spec;
  spec.pattern = "sliding_window", spec.sizes = {19}, spec.rows = 61;
  return spec;
}

SceneSpec ofFloats(bool isTf32) {
  SceneSpec spec = likeOthers();
  spec.dtype = HEDDLE_FP32, spec.isTf32 = isTf32;
  return spec;
}

struct Row {
  const char *what;
  std::function<void(SceneSpec &spec)> spec = {}; // of the scene that rank 1 has
  std::function<void(Request &request)> request = {};
  std::string toOther;                               // what rank 0 is told
  std::string toItself{};                            // what rank 1 is told, where that is something else
  int planRanks = 2;                                 // of rank 1's plan
  std::function<void(SceneSpec &spec)> kernels = {}; // of the scene that rank 1 has the kernels of
};

constexpr const char *kOtherWindow = "attn.pattern @p(%left: i32 {attn.min = 0 : i32}) { %w = attn.window [%left, 1] "
                                     "attn.softmax union(%w) }";

const std::vector<Row> &table() {
  static const std::vector<Row> rows = {
      {"rows", [](SceneSpec &s) { s.rows = 63; }, {}, "rank 1 has seqlen 63, rank 0 has seqlen 61"},
      {"heads", [](SceneSpec &s) { s.heads = 8; }, {}, "rank 1 has heads 8, rank 0 has heads 4"},
      {"heads of keys", [](SceneSpec &s) { s.kvHeads = 4; }, {}, "rank 1 has kv_heads 4, rank 0 has kv_heads 2"},
      {"head dim", [](SceneSpec &s) { s.dim = 32; }, {}, "rank 1 has head_dim 32, rank 0 has head_dim 16"},
      {"batch", [](SceneSpec &s) { s.batch = 2; }, {}, "rank 1 has batch 2, rank 0 has batch 1"},
      {"dtype", [](SceneSpec &s) { s.dtype = HEDDLE_FP16; }, {}, "rank 1 has q fp16, rank 0 has q bf16"},
      {"pattern", [](SceneSpec &s) { s.pattern = kOtherWindow; }, {}, "rank 1 has pattern "},
      {"layout", [](SceneSpec &s) { s.layout = "zigzag"; }, {}, "rank 1 has layout "},
      {"form", [](SceneSpec &s) { s.form = "ring"; }, {}, "rank 1 has plan "},
      {"argument of the plan",
       [](SceneSpec &s) { s.sizes = {20}; },
       {},
       "rank 1 has operand 0 20, rank 0 has operand 0 19"},
      {"argument of the call",
       {},
       [](Request &r) { r.operands[0].value.i64 = 18; },
       "rank 1 takes no part: attention arguments: left: expected 19, of which the plan was made, got 18",
       "left: expected 19, of which the plan was made, got 18"},
      {"scale", {}, [](Request &r) { r.scale = 0.5f; }, "rank 1 has scale 0.500000, rank 0 has scale 0.000000"},
      {"gradient of lse",
       {},
       [](Request &r) { r.isForward = false, r.hasDLse = false; },
       "rank 1 has d_lse 0, rank 0 has d_lse 1"},
      {"kind",
       {},
       [](Request &r) { r.isForward = false; },
       "rank 1 has kind backward_accumulate_deterministic, rank 0 has kind forward"},
      {"version", {}, [](Request &r) { r.version = "0.0.1"; }, "rank 1 has version 0.0.1, rank 0 has version "},
      {"number of ranks",
       {},
       {},
       "rank 1 takes no part: attention arguments: plan: it is of 3 ranks, the group has 2",
       "plan: it is of 3 ranks, the group has 2",
       3},
      {"kernels",
       {},
       {},
       "rank 1 takes no part: call over a group: kernels: number 0 is of another pattern",
       "kernels: number 0 is of another pattern",
       2,
       [](SceneSpec &s) { s.pattern = kOtherWindow; }},
      {"precision",
       [](SceneSpec &s) { s = ofFloats(true); },
       {},
       "rank 1 has kind forward_tf32, rank 0 has kind forward"},
      {"precision of kernels",
       [](SceneSpec &s) { s = ofFloats(false); },
       {},
       "rank 1 takes no part: call over a group: kernels: expected one of kind forward beside forward_tf32, ",
       "kernels: expected one of kind forward beside forward_tf32, ",
       2,
       [](SceneSpec &s) { s = ofFloats(true); }},
      {"precision than kernels",
       [](SceneSpec &s) { s = ofFloats(true); },
       {},
       "rank 1 takes no part: call over a group: kernels: expected one of kind forward_tf32 beside forward, ",
       "kernels: expected one of kind forward_tf32 beside forward, ",
       2,
       [](SceneSpec &s) { s = ofFloats(false); }},
  };
  return rows;
}

class Joins {
public:
  explicit Joins(const TestOptions &options) : options(options), kernels(options.folder) {}

  Status prepare();
  void run(Verdict &verdict);

private:
  Status addRow(const Row &row);
  Result<const Scene *> sceneOf(const std::function<void(SceneSpec &spec)> &change);
  std::string runRow(size_t number, Team &team);

  const TestOptions &options;
  Kernels kernels;
  std::vector<std::unique_ptr<Scene>> scenes; // the first one is rank 0's
  std::vector<Attempt> attempts;              // the first one is what both agree on, the others are the table's
};

Result<const Scene *> Joins::sceneOf(const std::function<void(SceneSpec &spec)> &change) {
  SceneSpec spec = likeOthers();
  change(spec);
  HEDDLE_ASSIGN(scenes.emplace_back(), Scene::make(spec));
  HEDDLE_TRY(kernels.prepare(*scenes.back(), /*isComputed=*/false));
  return const_cast<const Scene *>(scenes.back().get());
}

Status Joins::addRow(const Row &row) {
  Scene *base = scenes[0].get();
  const Scene *other = base, *kernelsOf = nullptr;
  if (row.spec) {
    HEDDLE_ASSIGN(other, sceneOf(row.spec));
  }
  if (row.kernels) {
    HEDDLE_ASSIGN(kernelsOf, sceneOf(row.kernels));
  }
  HEDDLE_ASSIGN(const heddle_group_plan *theirs, const_cast<Scene *>(other)->plan(row.planRanks));
  const bool isOfGradients = std::string(row.what) == "gradient of lse";
  attempts.push_back({base, attempts[0].plan, isOfGradients, [=](Request &request, int rank) {
                        request.isForward = !isOfGradients;
                        if (rank == 0)
                          return;
                        request.scene = other, request.plan = theirs;
                        request.operands = other->operands, request.kernelsOf = kernelsOf;
                        if (row.request)
                          row.request(request);
                        request.isBackward = !request.isForward;
                      }});
  return {};
}

Status Joins::prepare() {
  HEDDLE_ASSIGN(scenes.emplace_back(), Scene::make(likeOthers()));
  HEDDLE_TRY(kernels.prepare(*scenes[0]));
  HEDDLE_ASSIGN(const heddle_group_plan *plan, scenes[0]->plan(2));
  attempts.push_back({scenes[0].get(), plan});
  for (const Row &row : table())
    HEDDLE_TRY(addRow(row));
  return {};
}

std::string Joins::runRow(size_t number, Team &team) {
  const Row &row = table()[number];
  const std::vector<int> both = Team::firstOf(2);
  for (const Reply &reply : team.meet(both, "join", 0))
    if (!reply.isOk())
      return reply.words;
  auto sends = [] { return board().ranks[0].sends + board().ranks[1].sends; };
  const int64_t before = sends();
  const std::vector<Reply> replies =
      team.order(both, std::vector<std::string>(2, "call " + std::to_string(number + 1)));
  for (int rank : both) {
    const std::string &wanted = rank && !row.toItself.empty() ? row.toItself : row.toOther;
    const Reply &reply = replies[size_t(rank)];
    if (reply.end != Reply::End::answered || !reply.isIntact || reply.words.find(wanted) == std::string::npos)
      return "rank " + std::to_string(rank) + ": expected '" + wanted + "', got '" + reply.words + "'";
  }
  if (sends() != before)
    return std::to_string(sends() - before) + " messages were sent";
  Scene &scene = *scenes[0];
  scene.spoil(scene.tensors);
  for (const Reply &reply : team.order(both, {"call 0", "call 0"}))
    if (!reply.isOk())
      return "the group is of no more use: " + reply.words;
  for (int rank : both)
    if (const std::string wrong =
            scene.difference(*attempts[0].plan, rank, scene.tensors, scene.expected, options.tolerance());
        !wrong.empty())
      return wrong;
  (void)team.order(both, {"leave 0", "leave 0"});
  return sends() == before ? "the call that both agree on sends nothing" : "";
}

// Of a plan without its layout, as if that were long: what stands for it was made with the plan.
std::string digestsAreKept(const heddle_group_plan &plan) {
  GroupPlan without = *plan.plan;
  without.layout.clear();
  const std::string text = agreementOf({without, plan.digests, {}, {}, makeAttentionArgs()});
  const bool isKept = plan.digests.layout.size() == 16 && plan.digests.plan.size() == 64 &&
                      text.find("layout " + plan.digests.layout + "\nplan " + plan.digests.plan) != std::string::npos;
  return isKept ? "" : "a call makes digests of its plan anew: " + text;
}

void Joins::run(Verdict &verdict) {
  Team team(2, attempts, kernels, options.team());
  Stopwatch watch(options);
  if (const Reply made = team.makeKernels(attempts.size()); !made.isOk())
    return verdict.say("joins", "kernels: " + made.words);
  watch.say("processes, and kernels");
  if (const Reply alone = team.order(0, "alone 0"); !alone.isOk())
    return verdict.say("joins", alone.words);
  for (size_t number = 0; number < table().size(); ++number)
    verdict.say(std::string("another ") + table()[number].what, runRow(number, team));
  watch.say("groups, and what their ranks are told");
  verdict.say("what is compared of a plan is kept with it", digestsAreKept(*attempts[0].plan));
}

} // namespace

int testJoins(const TestOptions &options) {
  Verdict verdict;
  Joins joins(options);
  if (const Status prepared = joins.prepare(); !prepared.isOk())
    verdict.say("joins", prepared.message());
  else
    joins.run(verdict);
  return verdict.failures();
}

} // namespace heddle::ranks
