//===- PreparedPattern.cpp - a pattern without MLIR -----------------------===//
#include "compiler/Driver/PreparedPattern.h"
#include "codegen/Config/PatternRates.h"

#include <algorithm>

namespace heddle {

bool reliesOnBlocks(const PreparedPattern &prepared) {
  const std::vector<PassRates> &passes = prepared.rates->passes;
  return prepared.rates->grain > 1 ||
         std::any_of(passes.begin(), passes.end(), [](const PassRates &pass) { return pass.grain > 1; });
}

PreparedPattern withoutBlocks(PreparedPattern prepared) {
  PatternRates rates = *prepared.rates;
  rates.grain = 1;
  for (PassRates &pass : rates.passes)
    pass.grain = 1;
  prepared.rates = std::make_shared<const PatternRates>(std::move(rates));
  return prepared;
}

} // namespace heddle
