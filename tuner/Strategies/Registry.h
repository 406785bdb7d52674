//===- Registry.h - the list of search strategies ---------------------------===//
// A new strategy is one file that defines its StrategyInfo and one line in Registry.cpp.
#pragma once

#include "tuner/Strategies/Options.h"
#include "tuner/Strategies/Strategy.h"

namespace heddle::tuner {

struct StrategyInfo {
  const char *name;
  const char *summary; // one line of help
  std::vector<OptionInfo> options;
  Result<std::unique_ptr<Strategy>> (*create)(StrategyInput input, const OptionTexts &options);
};

// All strategies, in the order in which help lists them. The list never changes.
const std::vector<StrategyInfo> &strategyRegistry();

// Creates the strategy of a specification "<name>" or "<name>:<option>=<integer>,...". Refused: an
// unknown name or option; the message lists what there is.
Result<std::unique_ptr<Strategy>> createStrategy(const std::string &specification, StrategyInput input);

} // namespace heddle::tuner
