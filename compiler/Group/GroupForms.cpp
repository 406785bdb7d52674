#include "compiler/Group/GroupForms.h"

#include "runtime/Core/CountText.h"

#include <algorithm>

namespace heddle {
namespace {

using attn::GroupForm;

constexpr int64_t kMostRanks = 64; ///< the text of a plan grows with their square

struct NamedForm {
  const char *name;
  GroupForm form;
};
constexpr NamedForm kForms[] = {
    {"gather", GroupForm::Gather}, {"ring", GroupForm::Ring}, {"ulysses", GroupForm::Ulysses}};

/// Of one plan, both passes where gradients are asked for.
GroupTime timeOf(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients) {
  if (request.layout.ranks.size() > size_t(kMostRanks))
    return {{}, {}, "of more than " + counted(kMostRanks, "rank") + " none is made"};
  const Result<GroupPlan> plan = attn::makeGroupPlan(request);
  if (!plan)
    return {{}, {}, plan.status().message()};
  GroupTime time = groupTime(*plan, call, request.analysis, request.sizes);
  if (!withGradients || !time.ms)
    return time;
  RingCall backward = call;
  backward.kind = Kind{KindBase::backward};
  const GroupTime ofGradients = groupTime(*plan, backward, request.analysis, request.sizes);
  if (!ofGradients.ms)
    return ofGradients;
  *time.ms += *ofGradients.ms;
  return time;
}

std::vector<GroupForecast> forecast(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients) {
  std::vector<GroupForecast> forecasts;
  for (const auto &[name, form] : kForms) {
    attn::GroupPlanRequest ofForm = request;
    ofForm.form = form;
    forecasts.push_back({name, form, timeOf(ofForm, call, withGradients)});
  }
  return forecasts;
}

} // namespace

std::vector<GroupForecast> forecastForms(const attn::GroupPlanRequest &request, const RingCall &call) {
  return forecast(request, call, /*withGradients=*/false);
}

const GroupForecast *bestOf(const std::vector<GroupForecast> &forecasts) {
  const GroupForecast *best = nullptr;
  for (const GroupForecast &each : forecasts)
    if (each.time.ms && (!best || *each.time.ms < *best->time.ms))
      best = &each;
  return best;
}

std::optional<GroupForm> parseGroupForm(const std::string &name) {
  for (const NamedForm &known : kForms)
    if (name == known.name)
      return known.form;
  return std::nullopt;
}

const char *nameOf(GroupForm form) {
  return std::find_if(std::begin(kForms), std::end(kForms), [&](const NamedForm &known) { return known.form == form; })
      ->name;
}

FormChoice chooseForm(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients) {
  if (request.isPlacementFree)
    return {};
  const std::vector<GroupForecast> forecasts = forecast(request, call, withGradients);
  const GroupForecast *best = bestOf(forecasts);
  return best ? FormChoice{best->as, best->time.ms} : FormChoice{};
}

} // namespace heddle
