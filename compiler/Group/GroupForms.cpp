#include "compiler/Group/GroupForms.h"

#include "runtime/Core/CountText.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle {
namespace {

using attn::GroupForm;

constexpr int64_t kMostRanks =
    64; ///< whose plans are all made; of more, plans of so many teams if they are no great work
/// Of plans over more ranks, and over more teams, so that all forms of 1,024 ranks take about a second.
constexpr int64_t kMostVisits = 4 << 10, kMostLaunchesOfRing = int64_t(1) << 16,
                  kMostMeetingsOfGather = int64_t(1) << 18;

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

std::string msText(double ms) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f ms", ms);
  return text;
}

/// What calls of a request are asked for: forward, and gradients where they count.
std::vector<RingCall> passesOf(const RingCall &call, bool withGradients) {
  std::vector<RingCall> passes = {call};
  if (withGradients)
    passes.emplace_back(call).kind = Kind{KindBase::backward};
  return passes;
}

/// Of one plan, all passes.
GroupTime timeOf(const attn::GroupPlanRequest &request, const std::vector<RingCall> &passes) {
  const Result<GroupPlan> plan = attn::makeGroupPlan(request);
  if (!plan)
    return {{}, {}, plan.status().message()};
  GroupTime time;
  for (const RingCall &call : passes) {
    GroupTime ofPass = groupTime(*plan, call, request.analysis, request.sizes);
    if (!ofPass.ms)
      return ofPass;
    if (time.ms)
      *time.ms += *ofPass.ms;
    else
      time = std::move(ofPass);
  }
  return time;
}

std::vector<TeamForm> formsOf(const attn::GroupPlanRequest &request) {
  const int64_t ranks = int64_t(request.layout.ranks.size());
  std::vector<TeamForm> forms = {{GroupForm::Gather}, {GroupForm::Ring}};
  if (ranks > 1)
    forms.push_back({GroupForm::Gather, ranks});
  if (request.differsByHead.empty())
    for (int64_t team : teamsOf(ranks, request.sizes.heads, request.kvHeads))
      for (const NamedForm &known : kForms)
        forms.push_back({known.form, team});
  return forms;
}

/// Makes plans of all forms of a request, those of few teams first, and no others than may be the best.
class Forecaster {
public:
  Forecaster(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients)
      : request(request), passes(passesOf(call, withGradients)), ranks(int64_t(request.layout.ranks.size())) {}

  std::vector<GroupForecast> run() {
    const std::vector<TeamForm> forms = formsOf(request);
    std::vector<GroupForecast> forecasts;
    for (const TeamForm &form : forms)
      forecasts.push_back({nameOf(form, ranks), form, {}});
    for (bool areFew : {true, false})
      for (auto each = forecasts.rbegin(); each != forecasts.rend(); ++each) // more teams come before fewer
        if (areFew == (ranks / each->as.headRanks <= kMostRanks))
          add(*each);
    return forecasts;
  }

private:
  void add(GroupForecast &forecast) {
    attn::GroupPlanRequest ofForm = request;
    ofForm.form = forecast.as.form, ofForm.headRanks = forecast.as.headRanks;
    forecast.time.whyNot = ranks > kMostRanks ? whyNot(ofForm) : "";
    if (!forecast.time.whyNot.empty())
      return;
    forecast.time = timeOf(ofForm, passes);
    if (forecast.time.ms)
      best = std::min(best.value_or(*forecast.time.ms), *forecast.time.ms);
  }

  /// "": the plan is worth being made.
  std::string whyNot(const attn::GroupPlanRequest &ofForm) const {
    if (const Status made = attn::checkPlanRequest(ofForm); !made.isOk())
      return made.message();
    if (attn::visitsOf(ofForm) > kMostVisits)
      return "of more than " + counted(kMostRanks, "rank") + " with so many ranges and pieces none is made";
    if (ranks / ofForm.headRanks <= kMostRanks)
      return "";
    const Result<attn::GroupBounds> bounds = attn::boundsOf(ofForm);
    if (!bounds)
      return bounds.status().message();
    if (best) {
      double least = 0;
      for (const RingCall &call : passes)
        least += leastMs(*bounds, call, request.analysis, request.sizes, ofForm.headRanks);
      if (least > *best)
        return "it takes at least " + msText(least) + ", another one less";
    }
    const int64_t most = ofForm.form == GroupForm::Ring ? kMostLaunchesOfRing : kMostMeetingsOfGather;
    if (bounds->meetings > most)
      return "of more than " + counted(most, ofForm.form == GroupForm::Ring ? "launch" : "message") + " none is made";
    return "";
  }

  const attn::GroupPlanRequest &request;
  const std::vector<RingCall> passes;
  const int64_t ranks;
  std::optional<double> best = {};
};

} // namespace

std::vector<GroupForecast> forecastForms(const attn::GroupPlanRequest &request, const RingCall &call) {
  return Forecaster(request, call, /*withGradients=*/false).run();
}

GroupTime timeWithSpans(const attn::GroupPlanRequest &request, const TeamForm &form, const RingCall &call) {
  attn::GroupPlanRequest ofForm = request;
  ofForm.form = form.form, ofForm.headRanks = form.headRanks;
  const Result<GroupPlan> plan = attn::makeGroupPlan(ofForm);
  if (!plan)
    return {{}, {}, plan.status().message()};
  return groupTime(*plan, call, request.analysis, request.sizes, Spans::kept);
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
  const std::vector<GroupForecast> forecasts = Forecaster(request, call, withGradients).run();
  const GroupForecast *best = bestOf(forecasts);
  return best ? FormChoice{best->as, best->time.ms, best->time.bytes()} : FormChoice{};
}

FormChoice timedForm(const attn::GroupPlanRequest &request, const TeamForm &form, const RingCall &call,
                     bool withGradients) {
  attn::GroupPlanRequest ofForm = request;
  ofForm.form = form.form, ofForm.headRanks = form.headRanks;
  const GroupTime time = timeOf(ofForm, passesOf(call, withGradients));
  return {form, time.ms, time.bytes()};
}

attn::LayoutFigures figuresOf(const std::string &name, const attn::ShardLayout &layout, const FormChoice &choice) {
  attn::LayoutFigures figures{name, std::nullopt, attn::WideInt(choice.bytes), choice.ms};
  for (size_t rank = 1; rank < layout.ranks.size(); ++rank)
    figures.isUneven |= std::abs(layout.rowsOf(rank) - layout.rowsOf(0)) > 1;
  return figures;
}

} // namespace heddle
