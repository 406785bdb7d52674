// Owns the choice among forms of plans over ranks, for `heddle ring plan` and for plans whose form is "auto": it is made of
// the pattern, its sizes, the layout and rates alone, so that ranks which are given the same choose alike.
#pragma once

#include "compiler/Group/GroupTimes.h"
#include "dialect/Geometry/GroupPlanner.h"

namespace heddle {

/// A form of plans that ranks follow (docs/distributed.md).
struct GroupForecast {
  const char *form;
  attn::GroupForm as;
  GroupTime time;
};

/// What plans of the request take, in each form; its own form is not looked at. None has a time beyond 64 ranks.
std::vector<GroupForecast> forecastForms(const attn::GroupPlanRequest &request, const RingCall &call);

/// The one that takes least, of equal ones the first; null where no time is known.
const GroupForecast *bestOf(const std::vector<GroupForecast> &forecasts);

/// gather, ring, ulysses; none: no such form.
std::optional<attn::GroupForm> parseGroupForm(const std::string &name);
const char *nameOf(attn::GroupForm form);

struct FormChoice {
  attn::GroupForm form = attn::GroupForm::Gather; ///< where no time is known, or bits depend on no placement
  std::optional<double> ms = {};
};

/// Of calls of `call`, whose kind is forward; `withGradients`: of both passes together.
FormChoice chooseForm(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients);

} // namespace heddle
