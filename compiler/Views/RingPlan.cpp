#include "compiler/Views/RingPlan.h"
#include "compiler/Pattern/HeadDependence.h"
#include "compiler/Pattern/RowTensors.h"
#include "dialect/Geometry/NamedLayout.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::views {
namespace {

using namespace heddle::attn;

/// Of more ranks plans are made of so many layouts.
constexpr int64_t kFewRanks = 64;
constexpr size_t kLayoutsOfManyRanks = 2;

std::string whatDiffersByHead(const PatternFile &file, const RingRequest &request) {
  return whatDependsOnHeads(file.pattern(), {file.analysis(), request.sizes});
}

/// The part of the progress that layout `index` of `count` is.
std::function<void(double)> partOf(const RingRequest &request, size_t index, size_t count) {
  if (!request.progress)
    return {};
  return [&request, index, count](double share) { request.progress((double(index) + share) / double(count)); };
}

GroupPlanRequest groupRequest(const PatternFile &file, const RingRequest &request, const RingPlan &ring) {
  GroupPlanRequest group{file.analysis(), request.sizes, ring.layout};
  group.kvHeads = request.call.kvHeads;
  group.areGradientsDetached = file.pattern().getSoftmax().isDetached();
  group.hasSink = file.pattern().getSoftmax().hasSink();
  group.rowTensors = rowTensorsOf(file.pattern(), request.sizes.seqlenK);
  group.differsByHead = whatDiffersByHead(file, request);
  return group;
}

/// What the ring between teams takes, whose members exchange heads.
Status addMixes(const PatternFile &file, const RingRequest &request, RingPlan &ring) {
  if (!whatDiffersByHead(file, request).empty())
    return {};
  for (int64_t team : teamsOf(request.ranks, request.call.heads, request.call.kvHeads)) {
    const RingCall ofMember = request.call.ofTeams(team);
    ProblemSizes sizes = request.sizes;
    sizes.heads = ofMember.heads;
    const ShardLayout teams = teamLayout(ring.layout, team);
    HEDDLE_ASSIGN(const ShardPlan plan, ShardPlan::create({file.analysis(), sizes, teams, ofMember.kvHeads}));
    addMix(ring.times, plan, ring.layout, request.call, team);
  }
  return {};
}

LayoutTimes timesOf(const RingPlan &ring) {
  const RingScheme *best = &ring.times.schemes.front(); // the ring
  for (const RingScheme &scheme : ring.times.schemes)
    if (scheme.isRing() && scheme.ms && *scheme.ms < best->ms.value_or(0))
      best = &scheme;
  LayoutTimes times;
  times.name = ring.name, times.balance = ring.plan->balance(), times.travelling = ring.plan->travelling();
  times.ms = best->ms, times.scheme = best->name, times.ringMs = ring.times.schemes.front().ms;
  times.rows = {ring.layout.rowsOf(0), ring.layout.rowsOf(0)};
  for (size_t rank = 1; rank < ring.layout.ranks.size(); ++rank)
    times.rows = {std::min(times.rows.begin, ring.layout.rowsOf(rank)),
                  std::max(times.rows.end, ring.layout.rowsOf(rank))};
  times.isUneven = times.rows.size() > 1;
  return times;
}

Result<std::unique_ptr<RingPlan>> planOne(const PatternFile &file, const RingRequest &request, const std::string &name,
                                          std::function<void(double)> progress) {
  auto ring = std::make_unique<RingPlan>();
  ring->name = name;
  HEDDLE_ASSIGN(ring->layout, namedLayout(name, {file.analysis(), request.sizes, request.ranks, request.stripe}));
  HEDDLE_ASSIGN(ShardPlan plan, ShardPlan::create({file.analysis(), request.sizes, ring->layout, request.call.kvHeads,
                                                   Direction::Forward, std::move(progress)}));
  ring->plan.emplace(std::move(plan));
  ring->times = ringTimes(*ring->plan, ring->layout, request.call);
  HEDDLE_TRY(addMixes(file, request, *ring));
  ring->figures = {timesOf(*ring)};
  return ring;
}

/// Their best plans, if few ranks make that no great work.
void addPlans(const PatternFile &file, const RingRequest &request, std::vector<std::unique_ptr<RingPlan>> &rings) {
  std::vector<size_t> order(rings.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto formulaMs = [&](size_t index) { return rings[index]->figures.front().ms.value_or(INFINITY); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(formulaMs(a), a) < std::pair(formulaMs(b), b); });
  if (request.ranks > kFewRanks)
    order.resize(std::min(order.size(), kLayoutsOfManyRanks));
  for (size_t index : order) {
    RingPlan &ring = *rings[index];
    addGroupTimes(file, request, ring);
    const GroupForecast *best = ring.bestOfPlans();
    if (!best)
      continue;
    LayoutTimes &times = ring.figures.front();
    times.form = best->form, times.planMs = best->time.ms, times.planBytes = best->time.bytes();
  }
}

/// By plans where the time of one is known, else by formula.
LayoutChoice choose(const std::vector<LayoutTimes> &layouts) {
  const bool arePlanned = std::any_of(layouts.begin(), layouts.end(), [](const auto &each) { return each.planMs; });
  std::vector<LayoutFigures> figures;
  for (const LayoutTimes &layout : layouts) {
    figures.push_back(layout);
    if (arePlanned)
      figures.back().ms = layout.planMs, figures.back().travelling = WideInt(layout.planBytes);
  }
  LayoutChoice choice = chooseLayout(figures);
  if (layouts[choice.index].planMs)
    choice.why += ", by their plans";
  else if (layouts[choice.index].ms)
    choice.why += ", by formula";
  return choice;
}

Result<std::unique_ptr<RingPlan>> planBest(const PatternFile &file, const RingRequest &request) {
  std::vector<std::unique_ptr<RingPlan>> rings;
  std::vector<RefusedLayout> refused;
  const std::vector<std::string> &names = layoutNames();
  for (size_t index = 0; index < names.size(); ++index) {
    auto made = planOne(file, request, names[index], partOf(request, index, names.size()));
    if (!made && names[index] == "contiguous") // too many ranks
      return made.status();
    if (!made)
      refused.push_back({names[index], made.status().message()});
    else if (request.isOfEqualParts && (*made)->figures.front().isUneven)
      refused.push_back({names[index], "its parts have " + grouped((*made)->figures.front().rows.begin) + " to " +
                                           grouped((*made)->figures.front().rows.end) + " rows"});
    else
      rings.push_back(made.take());
  }
  addPlans(file, request, rings);
  std::vector<LayoutTimes> figures;
  for (const std::unique_ptr<RingPlan> &ring : rings)
    figures.push_back(ring->figures.front());
  const LayoutChoice choice = choose(figures);
  std::unique_ptr<RingPlan> ring = std::move(rings[choice.index]);
  ring->why = choice.why, ring->figures = std::move(figures), ring->refused = std::move(refused);
  return ring;
}

} // namespace

int64_t RingPlan::headRanks() const {
  if (const GroupForecast *best = bestOfPlans())
    return best->as.headRanks;
  return times.best ? times.schemes[*times.best].headRanks : 1;
}

Result<std::unique_ptr<RingPlan>> planRing(const PatternFile &file, const RingRequest &request) {
  if (request.layout == "auto")
    return planBest(file, request);
  HEDDLE_ASSIGN(auto ring, planOne(file, request, request.layout, request.progress));
  ring->why = "as asked";
  return ring;
}

void addGroupTimes(const PatternFile &file, const RingRequest &request, RingPlan &ring) {
  if (!ring.groups.empty() || !ring.whyNoPlan.empty())
    return;
  if (const Result<std::string> part = file.partText(); !part) {
    const std::string why = part.status().message();
    ring.whyNoPlan = why.substr(0, why.find('\n')); // notes follow
    return;
  }
  ring.groups = forecastForms(groupRequest(file, request, ring), request.call);
}

void addSpans(const PatternFile &file, const RingRequest &request, RingPlan &ring) {
  const GroupForecast *best = ring.bestOfPlans();
  for (GroupForecast &group : ring.groups)
    if (&group == best)
      group.time = timeWithSpans(groupRequest(file, request, ring), group.as, request.call);
}

std::vector<size_t> heaviestFirst(const RingPlan &ring) {
  std::vector<size_t> order(ring.plan->ranks());
  std::iota(order.begin(), order.end(), size_t(0));
  std::vector<std::pair<WideInt, WideInt>> weights;
  for (size_t rank : order)
    weights.emplace_back(ring.plan->pairsOf(rank).value_or(0), ring.times.ranks[rank].receives);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(weights[b], a) < std::pair(weights[a], b); });
  return order;
}

} // namespace heddle::views
