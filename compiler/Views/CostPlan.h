// Owns what `heddle cost` shows: the best layouts with their time, memory and outlook, why others are none, and published
// runs beside what is predicted of them.
#pragma once

#include "compiler/Cost/Outlook.h"
#include "compiler/Cost/ReadProblem.h"
#include "compiler/Cost/Search.h"
#include "compiler/Views/CostRates.h"

namespace heddle::views {

struct CostPlan {
  cost::CostProblem problem; ///< with its attention
  cost::Reported reported;
  cost::SearchResult found;
};

/// Fails as addPairs(). `most` >= 1 layouts are kept.
Result<CostPlan> planCost(cost::CostFile file, size_t most, const TunedWinners *tuned = nullptr,
                          const std::function<void(double share)> &progress = {});

std::string costText(const CostPlan &plan);
/// Memory of a GPU at the moments of a step as bars, the step as a line, and its pipeline in time. There is a layout.
std::string costSvg(const CostPlan &plan);

/// One run of which somebody reported the time of a step.
struct PublishedRun {
  CostPlan plan; ///< of the best layout that the report leaves open
  double predicted = 0;
  double error() const { return predicted / plan.reported.secondsOfStep - 1; }
};
/// All of the program, or the first that fails: there is none whose layout is impossible.
Result<std::vector<PublishedRun>> publishedRuns();
double meanError(const std::vector<PublishedRun> &runs);
std::string publishedText(const std::vector<PublishedRun> &runs);

/// As the text and the picture have them: "74.5 GiB", "61.2 s", "12.3 ms".
std::string gibText(double bytes);
std::string secondsText(double seconds);

} // namespace heddle::views
