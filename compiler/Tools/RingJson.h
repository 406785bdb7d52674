// Owns what `heddle ring plan --json` prints.
#pragma once

#include "compiler/Tools/Output.h"
#include "compiler/Views/RingPlan.h"

namespace heddle::cli {

/// Every step of each rank, too, if asked or of few ranks.
Json ringJson(const PatternFile &file, const views::RingRequest &request, const views::RingPlan &ring, bool withAll);

} // namespace heddle::cli
