//===- CompareWinners.cpp - the winners of two databases ------------------===//
#include "compiler/Report/Report.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Store/StoreDiff.h"

#include <algorithm>
#include <cmath>

namespace heddle::report {

const char *comparisonName(Comparison::Kind kind) {
  switch (kind) {
  case Comparison::Kind::faster:
    return "faster";
  case Comparison::Kind::slower:
    return "slower";
  case Comparison::Kind::alike:
    return "alike";
  case Comparison::Kind::untimed:
    return "not timed in both";
  case Comparison::Kind::onlyHere:
    return "only here";
  case Comparison::Kind::onlyThere:
    return "only there";
  }
  return "";
}

namespace {

using Configs = std::map<std::string, std::string>;

Result<Configs> configsOf(const Store &store) {
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store.kernels());
  Configs configs;
  for (const KernelSummary &kernel : kernels)
    configs[kernel.record.contentKey] = kernel.record.config;
  return configs;
}

Comparison::Kind kindOf(double ratio) {
  if (ratio <= 0)
    return Comparison::Kind::untimed;
  if (std::fabs(ratio - 1) <= kAlike)
    return Comparison::Kind::alike;
  return ratio > 1 ? Comparison::Kind::faster : Comparison::Kind::slower;
}

Comparison comparisonOf(const Winner &here, const Winner &there, const std::string &configHere,
                        const std::string &configThere) {
  const double ratio = here.medianUs > 0 && there.medianUs > 0 ? there.medianUs / here.medianUs : 0;
  return {kindOf(ratio), here, there, configHere, configThere, ratio, ""};
}

std::string keyWithoutGenerator(WinnerKey key) {
  key.generator.clear();
  return fieldDigest(key);
}

/// Those that differ in the generator alone become one, unless several could be meant.
void pairAcrossGenerators(const StoreDiff &diff, const Configs &here, const Configs &there,
                          std::vector<Comparison> &result) {
  std::map<std::string, std::vector<const Winner *>> onlyHere, onlyThere;
  for (const Winner &winner : diff.winnersOnlyA)
    onlyHere[keyWithoutGenerator(winner)].push_back(&winner);
  for (const Winner &winner : diff.winnersOnlyB)
    onlyThere[keyWithoutGenerator(winner)].push_back(&winner);
  auto config = [](const Configs &configs, const Winner &winner) {
    auto found = configs.find(winner.contentKey);
    return found == configs.end() ? std::string() : found->second;
  };
  for (auto &[key, ours] : onlyHere) {
    std::vector<const Winner *> &theirs = onlyThere[key];
    if (ours.size() == 1 && theirs.size() == 1) {
      result.push_back(comparisonOf(*ours[0], *theirs[0], config(here, *ours[0]), config(there, *theirs[0])));
      theirs.clear();
      continue;
    }
    for (const Winner *winner : ours)
      result.push_back({Comparison::Kind::onlyHere, *winner, {}, config(here, *winner), "", 0, ""});
  }
  for (auto &[key, theirs] : onlyThere)
    for (const Winner *winner : theirs)
      result.push_back({Comparison::Kind::onlyThere, {}, *winner, "", config(there, *winner), 0, ""});
}

} // namespace

Result<Comparisons> compareWinners(const Store &here, const Store &there) {
  HEDDLE_ASSIGN(StoreDiff diff, diffStores(here, there));
  HEDDLE_ASSIGN(Configs configsHere, configsOf(here));
  HEDDLE_ASSIGN(Configs configsThere, configsOf(there));
  Comparisons result;
  result.equal = diff.winnersEqual;
  for (const WinnerDifference &difference : diff.winnersDiffer)
    result.rows.push_back(comparisonOf(difference.a, difference.b, difference.configA, difference.configB));
  pairAcrossGenerators(diff, configsHere, configsThere, result.rows);
  auto order = [](const Comparison &comparison) {
    return std::make_pair(int(comparison.kind), fieldText(static_cast<const WinnerKey &>(comparison.either())));
  };
  std::sort(result.rows.begin(), result.rows.end(),
            [&](const Comparison &a, const Comparison &b) { return order(a) < order(b); });
  return result;
}

} // namespace heddle::report
