// Owns what `heddle ring plan --json` and `heddle ring decode --json` print.
#pragma once

#include "compiler/Tools/Output.h"
#include "compiler/Views/RingDecode.h"
#include "compiler/Views/RingPlan.h"

namespace heddle::cli {

/// Every step of each rank, too, if asked or of few ranks.
Json ringJson(const PatternFile &file, const views::RingRequest &request, const views::RingPlan &ring, bool withAll);

Json decodeJson(const PatternFile &file, const views::RingRequest &request, const views::DecodeTimes &times);

} // namespace heddle::cli
