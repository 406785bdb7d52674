#include "compiler/Session/PreparedPattern.h"
#include "codegen/Config/PatternRates.h"

#include <algorithm>

namespace heddle {

bool reliesOnBlocks(const PreparedPattern &prepared) {
  const PatternRates &rates = *prepared.rates;
  auto relies = [](const auto &kernel) { return kernel.grain > 1 || kernel.bandedGrain > 1; };
  return relies(rates) || std::any_of(rates.passes.begin(), rates.passes.end(), relies);
}

PreparedPattern withoutBlocks(PreparedPattern prepared) {
  PatternRates rates = *prepared.rates;
  rates.grain = rates.bandedGrain = rates.transposedGrain = rates.transposedBandedGrain = 1;
  for (PassRates &pass : rates.passes)
    pass.grain = pass.bandedGrain = 1;
  prepared.rates = std::make_shared<const PatternRates>(std::move(rates));
  return prepared;
}

} // namespace heddle
