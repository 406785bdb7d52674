// Owns the choice among forms of plans over ranks, for `heddle ring plan` and for plans whose form is "auto": it is made of
// the pattern, its sizes, the layout and rates alone, so that ranks which are given the same choose alike.
#pragma once

#include "compiler/Group/GroupTimes.h"
#include "dialect/Geometry/GroupPlanner.h"
#include "dialect/Geometry/ShardPlan.h"

namespace heddle {

/// A form of plans that ranks follow (docs/distributed.md): teams of so many ranks exchange heads, and share the sequence by a
/// form.
struct TeamForm {
  attn::GroupForm form = attn::GroupForm::Gather;
  int64_t headRanks = 1;
};

/// gather, ring; ulysses, of one team; ulysses4+gather, ulysses4+ring, of teams of 4. None: no such form.
std::optional<TeamForm> parseTeamForm(const std::string &name, int64_t ranks);
/// The shortest.
std::string nameOf(const TeamForm &form, int64_t ranks);
/// "auto, gather, ..."
extern const char *const kTeamForms;

struct GroupForecast {
  std::string form;
  TeamForm as;
  GroupTime time;
};

/// Teams of more than one rank and less than all, as many as there can be of such a call.
std::vector<int64_t> teamsOf(int64_t ranks, int64_t heads, int64_t kvHeads);

/// What plans of the request take: gather, ring, ulysses, then mixes that there can be; its own form is not looked at. Over more
/// than 64 teams a plan whose bounds (GroupBounds.h) say that it cannot be the best is not made, nor one of very many launches.
std::vector<GroupForecast> forecastForms(const attn::GroupPlanRequest &request, const RingCall &call);

/// The one that takes least, of equal ones the first; null where no time is known.
const GroupForecast *bestOf(const std::vector<GroupForecast> &forecasts);

/// Of one form, with what each rank does when; its plan is made again.
GroupTime timeWithSpans(const attn::GroupPlanRequest &request, const TeamForm &form, const RingCall &call);

struct FormChoice {
  TeamForm form = {}; ///< gather where no time is known, or bits depend on no placement
  std::optional<double> ms = {};
  double bytes = 0; ///< that travel in all, of calls forward; 0 where no time is known
};

/// Of calls of `call`, whose kind is forward; `withGradients`: of both passes together.
FormChoice chooseForm(const attn::GroupPlanRequest &request, const RingCall &call, bool withGradients);
/// Likewise, of a form that is given.
FormChoice timedForm(const attn::GroupPlanRequest &request, const TeamForm &form, const RingCall &call,
                     bool withGradients);

/// Of a layout whose plans are of this choice, for attn::chooseLayout.
attn::LayoutFigures figuresOf(const std::string &name, const attn::ShardLayout &layout, const FormChoice &choice);

} // namespace heddle
