#include "compiler/Group/GroupForms.h"

#include "runtime/Core/CountText.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace heddle {
namespace {

using attn::GroupForm;

constexpr int64_t kMostRanks = 64; ///< the text of a plan grows with their square

constexpr const char *kExchange = "ulysses";

struct NamedForm {
  const char *name;
  GroupForm form;
};
constexpr NamedForm kForms[] = {{"gather", GroupForm::Gather}, {"ring", GroupForm::Ring}};

std::optional<GroupForm> formNamed(std::string_view name) {
  for (const NamedForm &known : kForms)
    if (name == known.name)
      return known.form;
  return std::nullopt;
}

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

std::vector<TeamForm> formsOf(const attn::GroupPlanRequest &request) {
  const int64_t ranks = int64_t(request.layout.ranks.size());
  std::vector<TeamForm> forms = {{GroupForm::Gather}, {GroupForm::Ring}};
  if (ranks > 1)
    forms.push_back({GroupForm::Gather, ranks});
  if (request.differsByHead.empty() && ranks <= kMostRanks)
    for (int64_t team : teamsOf(ranks, request.sizes.heads, request.kvHeads))
      for (const NamedForm &known : kForms)
        forms.push_back({known.form, team});
  return forms;
}

std::vector<GroupForecast> forecast(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients) {
  std::vector<GroupForecast> forecasts;
  for (const TeamForm &form : formsOf(request)) {
    attn::GroupPlanRequest ofForm = request;
    ofForm.form = form.form, ofForm.headRanks = form.headRanks;
    forecasts.push_back(
        {nameOf(form, int64_t(request.layout.ranks.size())), form, timeOf(ofForm, call, withGradients)});
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

const char *const kTeamForms = "auto, gather, ring, ulysses, or teams such as ulysses4+ring or ulysses4+gather";

std::optional<TeamForm> parseTeamForm(const std::string &name, int64_t ranks) {
  if (const std::optional<GroupForm> form = formNamed(name))
    return TeamForm{*form};
  std::string_view rest = name;
  if (rest.substr(0, std::strlen(kExchange)) != kExchange)
    return std::nullopt;
  rest.remove_prefix(std::strlen(kExchange));
  if (rest.empty())
    return TeamForm{GroupForm::Gather, ranks};
  TeamForm form;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), form.headRanks);
  rest.remove_prefix(size_t(end - rest.data()));
  const std::optional<GroupForm> between = formNamed(rest.substr(std::min<size_t>(1, rest.size())));
  if (error != std::errc() || form.headRanks < 1 || rest.substr(0, 1) != "+" || !between)
    return std::nullopt;
  form.form = *between;
  return form;
}

std::string nameOf(const TeamForm &form, int64_t ranks) {
  const char *between = std::find_if(std::begin(kForms), std::end(kForms), [&](const NamedForm &known) {
                          return known.form == form.form;
                        })->name;
  return form.headRanks == 1       ? between
         : form.headRanks == ranks ? kExchange
                                   : kExchange + std::to_string(form.headRanks) + "+" + between;
}

std::vector<int64_t> teamsOf(int64_t ranks, int64_t heads, int64_t kvHeads) {
  std::vector<int64_t> teams;
  for (int64_t team = 2; team < ranks; ++team)
    if (ranks % team == 0 && canExchange(heads, kvHeads, team))
      teams.push_back(team);
  return teams;
}

FormChoice chooseForm(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients) {
  if (request.isPlacementFree)
    return {};
  const std::vector<GroupForecast> forecasts = forecast(request, call, withGradients);
  const GroupForecast *best = bestOf(forecasts);
  return best ? FormChoice{best->as, best->time.ms} : FormChoice{};
}

} // namespace heddle
