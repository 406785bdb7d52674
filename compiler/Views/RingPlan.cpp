#include "compiler/Views/RingPlan.h"
#include "compiler/Pattern/HeadDependence.h"
#include "dialect/Geometry/NamedLayout.h"

#include <algorithm>
#include <numeric>

namespace heddle::views {
namespace {

using namespace heddle::attn;

const std::vector<std::string> kLayoutsOfAuto = {"contiguous", "zigzag", "striped"}; ///< of equal lengths

std::string whatDiffersByHead(const PatternFile &file, const RingRequest &request) {
  return whatDependsOnHeads(file.pattern(), {file.analysis(), request.sizes});
}

/// The part of the progress that layout `index` of `count` is.
std::function<void(double)> partOf(const RingRequest &request, size_t index, size_t count) {
  if (!request.progress)
    return {};
  return [&request, index, count](double share) { request.progress((double(index) + share) / double(count)); };
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

} // namespace

int64_t RingPlan::headRanks() const {
  if (const GroupForecast *best = bestOfPlans())
    return best->as.headRanks;
  return times.best ? times.schemes[*times.best].headRanks : 1;
}

Result<std::unique_ptr<RingPlan>> planRing(const PatternFile &file, const RingRequest &request) {
  const std::vector<std::string> names =
      request.layout == "auto" ? kLayoutsOfAuto : std::vector<std::string>{request.layout};
  std::vector<std::unique_ptr<RingPlan>> plans;
  std::vector<LayoutTimes> figures;
  for (size_t index = 0; index < names.size(); ++index) {
    auto made = planOne(file, request, names[index], partOf(request, index, names.size()));
    if (!made && (names.size() == 1 || names[index] == "contiguous"))
      return made.status();
    if (!made) // too few rows for its parts
      continue;
    figures.push_back((*made)->figures.front());
    plans.push_back(made.take());
  }
  const LayoutChoice choice = chooseLayout({figures.begin(), figures.end()});
  std::unique_ptr<RingPlan> ring = std::move(plans[choice.index]);
  ring->why = names.size() == 1 ? "as asked" : choice.why;
  ring->figures = std::move(figures);
  return ring;
}

void addGroupTimes(const PatternFile &file, const RingRequest &request, RingPlan &ring) {
  GroupPlanRequest group{file.analysis(), request.sizes, ring.layout};
  group.kvHeads = request.call.kvHeads;
  group.areGradientsDetached = file.pattern().getSoftmax().isDetached();
  group.hasSink = file.pattern().getSoftmax().hasSink();
  group.differsByHead = whatDiffersByHead(file, request);
  ring.groups = forecastForms(group, request.call);
}

std::vector<size_t> heaviestFirst(const RingPlan &ring) {
  std::vector<size_t> order(ring.plan->ranks());
  std::iota(order.begin(), order.end(), size_t(0));
  std::vector<std::pair<WideInt, WideInt>> weights;
  for (size_t rank : order)
    weights.emplace_back(ring.plan->pairsOf(rank).value_or(0), ring.times.ranks[rank].receives);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  return order;
}

} // namespace heddle::views
