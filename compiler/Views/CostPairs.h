// Owns what the analysis adds to a cost problem: kept pairs of one sequence, rates, the workspace of gradients, and how
// ranks that share a sequence divide it, as `heddle ring plan` does.
#pragma once

#include "compiler/Cost/Problem.h"
#include "compiler/Views/CostRates.h"

#include <functional>

namespace heddle::views {

/// Fills the attention of `problem`. Patterns are files beside the problem's, or names of the library. Errors name the file
/// of the problem and the pattern: none of that name, sizes that it lacks, pairs that nobody can count. Rates of this
/// project's kernels are those of `tuned`, where it is not null; what that lacks is marked, with what to tune.
Status addPairs(cost::CostProblem &problem, const TunedWinners *tuned = nullptr,
                const std::function<void(double share)> &progress = {});

} // namespace heddle::views
