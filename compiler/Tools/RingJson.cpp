#include "compiler/Tools/RingJson.h"
#include "compiler/Tools/CountJson.h"
#include "dialect/IR/RealWord.h"

namespace heddle::cli {
namespace {

constexpr size_t kFewRanks = 8; ///< of which every step is there

Json sizesJson(const PatternFile &file, const views::RingRequest &request) {
  Json parameters = Json::object();
  attn::PatternOp pattern = file.pattern();
  for (size_t i = 0; i < request.sizes.parameters.size(); ++i)
    if (!pattern.isOperand(i))
      parameters[pattern.getParameterName(i).str()] = pattern.isRealParameter(i)
                                                          ? Json(attn::realOfWord(request.sizes.parameters[i]))
                                                          : Json(request.sizes.parameters[i]);
  const RingCall &call = request.call;
  return {{"batch", call.batch},
          {"seqlen", request.sizes.seqlenK},
          {"heads", call.heads},
          {"kv_heads", call.kvHeads},
          {"head_dim", call.headDim},
          {"value_dim", call.valueDim},
          {"dtype", dtypeName(call.dtype)},
          {"parameters", parameters}};
}

Json ratesJson(const views::RingRequest &request) {
  const RingRates &rates = request.call.rates;
  return {{"tflops", rates.tflops},
          {"kernels_from", request.rateNote},
          {"links_from", request.linkNote.empty() ? "as given" : request.linkNote},
          {"link_gbps", rates.linkGBps},
          {"latency_us", rates.latencyUs},
          {"host_ranks", rates.hostRanks},
          {"host_gbps", rates.hostGBps},
          {"host_latency_us", rates.hostLatencyUs},
          {"launch_us", rates.launchUs},
          {"memory_gbps", rates.memoryGBps}};
}

Json layoutsJson(const views::RingRequest &request, const views::RingPlan &ring) {
  Json list = Json::array();
  for (const views::LayoutTimes &figures : ring.figures)
    list.push_back({{"layout", figures.name},
                    {"balance", figures.balance ? Json(*figures.balance) : Json()},
                    {"bytes", countJson(figures.travelling * request.call.bytesOfKey())},
                    {"ring_ms", figures.ringMs ? Json(*figures.ringMs) : Json()},
                    {"least", figures.scheme},
                    {"least_ms", figures.ms ? Json(*figures.ms) : Json()},
                    {"least_rows", figures.rows.begin},
                    {"most_rows", figures.rows.end},
                    {"plan", figures.planMs ? Json(figures.form) : Json()},
                    {"plan_ms", figures.planMs ? Json(*figures.planMs) : Json()},
                    {"plan_bytes", figures.planMs ? Json(int64_t(figures.planBytes)) : Json()}});
  for (const views::RefusedLayout &refused : ring.refused)
    list.push_back({{"layout", refused.name}, {"reason", refused.why}});
  return list;
}

Json predictedJson(const views::RingPlan &ring) {
  Json list = Json::array();
  for (const views::RingScheme &scheme : ring.times.schemes) {
    list.push_back(
        {{"scheme", scheme.name}, {"ms", scheme.ms ? Json(*scheme.ms) : Json()}, {"head_ranks", scheme.headRanks}});
    if (!scheme.ms)
      list.back()["reason"] = scheme.whyNot;
  }
  return list;
}

Json spansJson(const GroupSpans &spans) {
  Json list = Json::array();
  for (const GroupSpan &span : spans)
    list.push_back({{"queue", kSpanQueues[size_t(span.queue)]},
                    {"kind", kSpanKinds[size_t(span.kind)]},
                    {"begin_ms", span.begin},
                    {"end_ms", span.end}});
  return list;
}

Json groupRankJson(const GroupRankTime &rank, bool withSpans) {
  Json json = {{"ms", rank.ms},
               {"compute_ms", rank.computeMs},
               {"memory_ms", rank.memoryMs},
               {"launch_ms", rank.launchMs},
               {"beside_ms", rank.besideMs},
               {"first_wait_ms", rank.firstWaitMs},
               {"wait_ms", rank.waitMs},
               {"launches", rank.launches},
               {"messages", rank.messages},
               {"received_bytes", int64_t(rank.receivedBytes)},
               {"beyond_bytes", int64_t(rank.fromBeyondBytes)},
               {"waiting_rows", rank.waitingRows}};
  if (withSpans)
    json["spans"] = spansJson(rank.spans);
  return json;
}

/// Spans of the plan that takes least, if asked.
Json groupsJson(const views::RingPlan &ring, bool withSpans) {
  Json list = Json::array();
  for (const GroupForecast &group : ring.groups) {
    Json ranks = Json::array();
    for (const GroupRankTime &rank : group.time.ranks)
      ranks.push_back(groupRankJson(rank, withSpans && &group == ring.bestOfPlans()));
    list.push_back({{"form", group.form},
                    {"head_ranks", group.as.headRanks},
                    {"ms", group.time.ms ? Json(*group.time.ms) : Json()},
                    {"by_rank", ranks}});
    if (!group.time.ms)
      list.back()["reason"] = group.time.whyNot;
  }
  return list;
}

Json stepsJson(const views::RingRequest &request, const views::RingPlan &ring, size_t rank) {
  Json list = Json::array();
  const size_t ranks = ring.plan->ranks();
  const std::vector<views::RingSlot> slots = views::ringSlots(*ring.plan, request.call, rank);
  for (size_t index = 0; index < ranks; ++index) {
    const size_t peer = (rank + ranks - index) % ranks;
    const attn::ShardStep &step = ring.plan->step(rank, peer);
    if (step.columns == 0)
      continue;
    list.push_back({{"step", index},
                    {"from", peer},
                    {"keys", step.columns},
                    {"head_keys", countJson(step.headColumns)},
                    {"exact", step.isExact},
                    {"all_kept", step.isWhole},
                    {"bytes", rank == peer ? Json(0) : countJson(step.headColumns * request.call.bytesOfKey())},
                    {"kept_pairs", countJson(step.pairs)}});
    if (slots.empty())
      continue;
    list.back()["compute_ms"] = slots[index].computeMs;
    list.back()["move_ms"] = slots[index].moveMs;
    list.back()["bound"] = slots[index].isWaiting() ? "communication" : "compute";
  }
  return list;
}

Json ranksJson(const views::RingRequest &request, const views::RingPlan &ring, bool withSteps) {
  Json list = Json::array();
  for (size_t rank = 0; rank < ring.plan->ranks(); ++rank) {
    const views::RankTime &time = ring.times.ranks[rank];
    const std::optional<attn::WideInt> pairs = ring.plan->pairsOf(rank);
    Json rows = Json::array();
    for (const attn::IndexRange &range : ring.layout.ranks[rank])
      rows.push_back({range.begin, range.end});
    list.push_back({{"rank", rank},
                    {"rows", rows},
                    {"kept_pairs", countJson(pairs)},
                    {"receives_bytes", countJson(time.receives)},
                    {"sends_bytes", countJson(time.sends)},
                    {"compute_ms", pairs ? Json(time.computeMs) : Json()},
                    {"wait_ms", pairs ? Json(time.waitMs()) : Json()},
                    {"ms", pairs ? Json(time.ms) : Json()}});
    if (const GroupForecast *best = ring.bestOfPlans())
      list.back()["plan"] = groupRankJson(best->time.ranks[rank], /*withSpans=*/false);
    if (withSteps)
      list.back()["steps"] = stepsJson(request, ring, rank);
  }
  return list;
}

} // namespace

Json ringJson(const PatternFile &file, const views::RingRequest &request, const views::RingPlan &ring, bool withAll) {
  const std::optional<double> balance = ring.plan->balance();
  attn::WideInt pairs = 0;
  for (size_t rank = 0; rank < ring.plan->ranks(); ++rank)
    pairs += ring.plan->pairsOf(rank).value_or(0);
  return {{"pattern", attn::PatternOp(file.pattern()).getSymName().str()},
          {"file", file.path()},
          {"kind", request.call.kind.name()},
          {"sizes", sizesJson(file, request)},
          {"ranks", request.ranks},
          {"layout", ring.name},
          {"why", ring.why},
          {"layouts", layoutsJson(request, ring)},
          {"kept_pairs", balance ? countJson(pairs) : Json()},
          {"balance", balance ? Json(*balance) : Json()},
          {"rates", ratesJson(request)},
          {"predicted", predictedJson(ring)},
          {"of_plans", groupsJson(ring, withAll)},
          {"why_no_plan", ring.whyNoPlan.empty() ? Json() : Json(ring.whyNoPlan)},
          {"best_of_plans", ring.bestOfPlans() ? Json(ring.bestOfPlans()->form) : Json()},
          {"best", ring.times.best ? Json(ring.times.schemes[*ring.times.best].name) : Json()},
          {"by_rank", ranksJson(request, ring, withAll || ring.plan->ranks() <= kFewRanks)}};
}

Json decodeJson(const PatternFile &file, const views::RingRequest &request, const views::DecodeTimes &times) {
  Json schemes = Json::array(), ranks = Json::array();
  for (const views::DecodeScheme &scheme : times.schemes) {
    schemes.push_back({{"scheme", scheme.name}, {"ms", scheme.ms ? Json(*scheme.ms) : Json()}});
    if (!scheme.ms)
      schemes.back()["reason"] = scheme.whyNot;
  }
  for (size_t rank = 0; rank < times.shares.size(); ++rank) {
    const views::DecodeShare &share = times.shares[rank];
    ranks.push_back({{"rank", rank},
                     {"keys", {share.keys.begin, share.keys.end}},
                     {"kept_bytes", share.keptBytes},
                     {"compute_ms", share.ms}});
  }
  Json sizes = sizesJson(file, request);
  sizes["queries"] = request.sizes.seqlenQ;
  return {{"pattern", attn::PatternOp(file.pattern()).getSymName().str()},
          {"file", file.path()},
          {"sizes", sizes},
          {"ranks", request.ranks},
          {"rates", ratesJson(request)},
          {"exact", times.isExact},
          {"receives_bytes", times.receivedBytes},
          {"message_ms", times.messageMs},
          {"merge_ms", times.mergeMs},
          {"predicted", schemes},
          {"best", times.schemes[times.best].name},
          {"by_rank", ranks}};
}

} // namespace heddle::cli
