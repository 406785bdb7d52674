// Owns what a call of a pattern counts as rows of a head (runtime/Core/QueryRows.h).
#pragma once

#include "compiler/Pattern/ProblemKey.h"

namespace heddle {

/// Of sequences whose rows lie behind each other, the mean of them.
int64_t queryRowsOf(const ProblemShape &shape, const CallShape &call);

} // namespace heddle
