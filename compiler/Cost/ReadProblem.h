// Owns the file of `heddle cost`: docs/cost.md lists its keys. Errors name the file and the place of what is wrong.
#pragma once

#include "compiler/Cost/Problem.h"

namespace heddle::cost {

/// What somebody reported of a run, for `heddle cost --published`.
struct Reported {
  double secondsOfStep = 0; ///< 0: the file reports nothing
  std::string what;         ///< as it was reported, and how the seconds follow
  std::string source;
  std::string note; ///< why the prediction is off, where it is
};

struct CostFile {
  CostProblem problem;
  Reported reported;
};

/// `label` is the name of the file.
Result<CostFile> parseCostFile(const std::string &text, const std::string &label);
Result<CostFile> loadCostFile(const std::string &path);

} // namespace heddle::cost
