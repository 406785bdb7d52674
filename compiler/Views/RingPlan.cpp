#include "compiler/Views/RingPlan.h"
#include "compiler/Pattern/HeadDependence.h"
#include "dialect/Geometry/NamedLayout.h"

#include <algorithm>
#include <numeric>

namespace heddle::views {
namespace {

using namespace heddle::attn;

const std::vector<std::string> kLayoutsOfAuto = {"contiguous", "zigzag", "striped"}; ///< of equal lengths

/// The part of the progress that layout `index` of `count` is.
std::function<void(double)> partOf(const RingRequest &request, size_t index, size_t count) {
  if (!request.progress)
    return {};
  return [&request, index, count](double share) { request.progress((double(index) + share) / double(count)); };
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
  ring->figures = {{name, ring->plan->balance(), ring->plan->travelling(), ring->times.schemes.front().ms}};
  return ring;
}

} // namespace

Result<std::unique_ptr<RingPlan>> planRing(const PatternFile &file, const RingRequest &request) {
  const std::vector<std::string> names =
      request.layout == "auto" ? kLayoutsOfAuto : std::vector<std::string>{request.layout};
  std::vector<std::unique_ptr<RingPlan>> plans;
  std::vector<LayoutFigures> figures;
  for (size_t index = 0; index < names.size(); ++index) {
    auto made = planOne(file, request, names[index], partOf(request, index, names.size()));
    if (!made && (names.size() == 1 || names[index] == "contiguous"))
      return made.status();
    if (!made) // too few rows for its parts
      continue;
    figures.push_back((*made)->figures.front());
    plans.push_back(made.take());
  }
  const LayoutChoice choice = chooseLayout(figures);
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
  group.differsByHead = whatDependsOnHeads(file.pattern(), {file.analysis(), request.sizes});
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
