#include "codegen/Skeletons/Forward/Sm90Config.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "runtime/Core/TileReach.h"

namespace heddle {

using namespace sm90;

using C = Sm90Config;

static_assert(kMaxKeys <= kMostKeysOfTile);

const FieldsOf<Sm90Config> &Sm90Config::fields() {
  static const FieldsOf<C> list = {"sm90_forward",
                                   {{"block_m", &C::blockM, 1, kLargestField},
                                    {"block_n", &C::blockN, 1, kMaxKeys},
                                    {"stages", &C::stages, 1, kMaxStages},
                                    {"warps", &C::warps, 1, kLargestField},
                                    {"min_blocks", &C::minBlocks, 1, 4},
                                    {"rescale_threshold", &C::rescaleThreshold, 0, 60},
                                    {"compact_mask", &C::compactMask, 0, 1, noOrYes()},
                                    {"raster_reversed", &C::rasterReversed, 0, 1, noOrYes()},
                                    {"query_stages", &C::queryStages, 1, kMaxQueryStages},
                                    {"turn_taking", &C::turnTaking, 0, 1, noOrYes()},
                                    {"grid", &C::grid, 0, kGridDynamic, {"tile", "stride", "", "dynamic"}},
                                    {"softmax", &C::softmax, 0, kSoftmaxByRow, {"online", "anchored", "by_row"}},
                                    {"split_last", &C::splitLast, 0, 1, noOrYes()},
                                    {"split_tiles", &C::splitTiles, 0, kLargestField},
                                    {"turn_values", &C::turnValues, 0, 1, {"in_tiles", "once"}},
                                    {"flush_tiles", &C::flushTiles, 0, kLargestField},
                                    {"totals", &C::totals, 0, 1, {"shared", "workspace"}},
                                    {"producer_registers", &C::producerRegisters, kLeastRegisters, kMostRegisters},
                                    {"consumer_registers", &C::consumerRegisters, kLeastRegisters, kMostRegisters},
                                    {"raster_mib", &C::rasterMib, 0, kLargestField},
                                    {"chained_mib", &C::chainedMib, 0, kLargestField},
                                    {"document_tiles", &C::documentTiles, 0, 1, {"packed", "own"}}}};
  return list;
}

static constexpr CostChoice<C> kChoices[] = {
    {"block_m=256", &C::blockM, 256},
    {"min_blocks=3", &C::minBlocks, 3},
    {"stages=4", &C::stages, 4},
    {"stages=6", &C::stages, 6},
    {"rescale_threshold=0,online", &C::rescaleThreshold, 0, &C::softmax, kSoftmaxOnline},
    {"rescale_threshold=0,anchored", &C::rescaleThreshold, 0, &C::softmax, kSoftmaxAnchored},
    {"query_stages=2", &C::queryStages, 2},
    {"turn_taking,block_m=128", &C::turnTaking, 1, &C::blockM, 128},
    {"turn_taking,block_m=192", &C::turnTaking, 1, &C::blockM, 192},
    {"turn_taking,block_m=256", &C::turnTaking, 1, &C::blockM, 256},
    {"grid=tile", &C::grid, kGridTile},
    {"grid=dynamic", &C::grid, kGridDynamic},
    {"split_last", &C::splitLast, 1},
    {"split_tiles=0,online", &C::splitTiles, 0, &C::softmax, kSoftmaxOnline},
    {"split_tiles=0,anchored", &C::splitTiles, 0, &C::softmax, kSoftmaxAnchored},
    {"producer_registers=40", &C::producerRegisters, 40},
    {"producer_registers=56", &C::producerRegisters, 56},
    {"raster_mib=4", &C::rasterMib, 4},
    {"raster_mib=4096", &C::rasterMib, 4096},
};

ScheduleFacts sm90Schedule(const Sm90Config &config) {
  ScheduleFacts facts = forwardFacts(config, kChoices);
  facts.takesStrides = config.grid == kGridStride;
  facts.isAnchored = config.softmax == kSoftmaxAnchored;
  facts.partTiles = config.splitTiles;
  facts.rasterMib = config.rasterMib;
  return facts;
}

} // namespace heddle
