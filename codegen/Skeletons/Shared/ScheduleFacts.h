// Families say it of their own configurations, so that who estimates or compares knows no fields: how the work is cut
// and dealt out, which choices a factor is fitted for (tuner/Model), and which results depend on the order of blocks.
#pragma once

#include "codegen/Config/ForwardConfig.h"
#include "runtime/Core/Kinds.h"

#include <utility>
#include <vector>

namespace heddle {

struct ScheduleFacts {
  int64_t blockM = 0, blockN = 0;
  int64_t minBlocks = 1; ///< blocks of one SM
  bool isChained = false;
  bool isReversed = false;
  bool takesStrides = false; ///< blocks take every so many-th item, else the next one when they end
  bool isAnchored = false;
  int64_t partTiles = 0; ///< items of at least twice so many key tiles fall into parts of so many; 0: none
  int64_t rasterMib = 0; ///< K and V of the (batch, head) pairs that run side by side; 0: so many pairs:
  int64_t rasterHeads = 1;
  std::vector<std::pair<const char *, bool>> choices; ///< what a cost model has factors for, and whether it is so
  std::vector<Role> addedInAnyOrder; ///< sums in the order in which blocks come: bits may differ between launches
};

/// A choice that lengthens or shortens the whole, or two that do so together.
template <class Config> struct CostChoice {
  const char *name;
  int64_t Config::*field;
  int64_t value;
  int64_t Config::*otherField = nullptr;
  int64_t otherValue = 0;

  bool applies(const Config &config) const {
    return config.*field == value && (!otherField || config.*otherField == otherValue);
  }
};

/// What every family of forward kernels says before its own facts.
inline constexpr CostChoice<ForwardConfig> kForwardChoices[] = {
    {"block_m=64", &ForwardConfig::blockM, 64},       {"block_m=192", &ForwardConfig::blockM, 192},
    {"block_n=32", &ForwardConfig::blockN, 32},       {"block_n=48", &ForwardConfig::blockN, 48},
    {"block_n=64", &ForwardConfig::blockN, 64},       {"block_n=80", &ForwardConfig::blockN, 80},
    {"block_n=96", &ForwardConfig::blockN, 96},       {"block_n=112", &ForwardConfig::blockN, 112},
    {"min_blocks=2", &ForwardConfig::minBlocks, 2},   {"stages=3", &ForwardConfig::stages, 3},
    {"compact_mask", &ForwardConfig::compactMask, 1}, {"raster_reversed", &ForwardConfig::rasterReversed, 1},
};

/// What forward families share, and their own choices.
template <class Config, class Choices> ScheduleFacts forwardFacts(const Config &config, const Choices &own) {
  ScheduleFacts facts;
  facts.blockM = config.blockM;
  facts.blockN = config.blockN;
  facts.minBlocks = config.minBlocks;
  facts.isChained = config.chainedMib != 0;
  facts.isReversed = config.rasterReversed != 0;
  for (const auto &choice : kForwardChoices)
    facts.choices.emplace_back(choice.name, choice.applies(config));
  for (const auto &choice : own)
    facts.choices.emplace_back(choice.name, choice.applies(config));
  return facts;
}

} // namespace heddle
