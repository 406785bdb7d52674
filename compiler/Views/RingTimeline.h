// Owns how the time of a plan over ranks is drawn: a row for each rank, of what its queues do when.
#pragma once

#include "compiler/Views/RingPlan.h"
#include "compiler/Views/SvgText.h"

namespace heddle::views {

/// Up to 16 ranks; of more the first, the heaviest and the lightest ones. Ascending.
std::vector<size_t> shownRanks(const RingPlan &ring);

/// No more than `most` spans that cover `room` of a picture, `scale` of it a ms: those of one kind that touch there become one,
/// and where these are too many each place has the kind that takes most of it.
GroupSpans coarsened(const GroupSpans &spans, double scale, double room, size_t most);

/// Below `top`, between the margins of a page of such content, with its legend; where it ends. Nothing without spans.
double drawTimeline(SvgPage &page, double top, double content, const RingPlan &ring);

} // namespace heddle::views
