// Owns what `heddle ring plan` answers: the layout, what ranks ask of each other, and predicted times, from the analysis
// and given rates alone.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Group/GroupForms.h"
#include "compiler/Views/RingTimes.h"

#include <memory>

namespace heddle::views {

struct RingRequest {
  attn::ProblemSizes sizes;
  RingCall call;
  int64_t ranks = 1;
  std::string layout =
      "auto"; ///< a name of namedLayout(), or auto: chooseLayout() of all by what their best plans take
  bool isOfEqualParts = false;   ///< auto: of layouts whose ranks have as many rows, but for one
  std::optional<int64_t> stripe; ///< rows; as defaultStripe()
  std::string rateNote = {};     ///< where the kernel rate is from
  std::string linkNote = {};     ///< where rates of links are from; empty: as given
  std::function<void(double share)> progress = {};
};

struct LayoutTimes : attn::LayoutFigures { ///< ms: by formula, of the ring or of a mix that takes less
  std::optional<double> ringMs = {};
  std::string scheme = {};
  attn::IndexRange rows = {0, 0}; ///< the fewest and the most of a rank
  std::string form = {};          ///< of the plan that takes least; none where no time of one is known
  std::optional<double> planMs = {};
  double planBytes = 0; ///< that travel in all
};

struct RefusedLayout {
  std::string name, why;
};

/// Holds what its plan refers to, so it stays where it was made.
struct RingPlan {
  attn::ShardLayout layout;
  std::string name, why;               ///< of the layout
  std::vector<LayoutTimes> figures;    ///< of each layout that was looked at
  std::vector<RefusedLayout> refused;  ///< those that auto cannot take
  std::optional<attn::ShardPlan> plan; ///< never none
  RingTimes times;
  std::vector<GroupForecast> groups = {}; ///< none before addGroupTimes()
  std::string whyNoPlan = {};             ///< calls over ranks refuse the pattern

  /// The one that takes least; null where no time is known.
  const GroupForecast *bestOfPlans() const { return bestOf(groups); }
  /// Of what takes least: ranks of a team that exchange heads.
  int64_t headRanks() const;
};

/// With mixes where heads are alike. Of auto, plans of each layout are made; of more than 64 ranks those of the two layouts that
/// take least by formula. As ShardPlan::create and the layouts fail. `file` and the request outlive the plan.
Result<std::unique_ptr<RingPlan>> planRing(const PatternFile &file, const RingRequest &request);

/// What plans of the same layout take, in each form; nothing where that is known already.
void addGroupTimes(const PatternFile &file, const RingRequest &request, RingPlan &ring);

/// What ranks do when, of the plan that takes least, if there is one.
void addSpans(const PatternFile &file, const RingRequest &request, RingPlan &ring);

/// Ranks from the most kept pairs to the fewest; by what they receive where pairs are unknown.
std::vector<size_t> heaviestFirst(const RingPlan &ring);

/// Every rank, and every step of each; or the totals and the heaviest and lightest ranks.
std::string ringText(const PatternFile &file, const RingRequest &request, const RingPlan &ring, bool withAll);
/// Who takes how much of whose keys, and where addSpans() was asked what ranks do when, as SVG.
std::string ringSvg(const PatternFile &file, const RingRequest &request, const RingPlan &ring);
/// "1,048,576 tokens on 64 ranks, zigzag".
std::string ringWords(const RingRequest &request, const RingPlan &ring);

} // namespace heddle::views
