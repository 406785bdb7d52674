// Fits to tests/data/tuner/h200_*.csv, of each family by itself; tests/unit/cost_training_test.cpp holds one against the
// other and prints what a new fit gives. The terms are relative to the data sheet's rates, so that
// other GPUs are predicted with their own row.
#include "compiler/Session/ScheduleCost.h"

#include <algorithm>
#include <cassert>

namespace heddle {
namespace {

struct FittedCosts {
  const char *family;
  std::vector<tuner::CostParameter> values; ///< of terms and factors, whose names differ
};

const FittedCosts kFitted[] = {{"sm90_forward",
                                {{"tensor", 0.2744},
                                 {"exp_online", 0.2361},
                                 {"exp_anchored", 0.1971},
                                 {"mask", 0.1094},
                                 {"tile_latency", 0.3454},
                                 {"key_latency", 1.698},
                                 {"product_latency", 0.226},
                                 {"memory", 0.1033},
                                 {"item", 3.758},
                                 {"part", 57.97},
                                 {"launch", 0.8166},
                                 {"block_m=64", -0.1935},
                                 {"block_m=192", 0.106},
                                 {"block_n=32", 0.3738},
                                 {"block_n=48", 0.2023},
                                 {"block_n=64", 0.1038},
                                 {"block_n=80", 0.06211},
                                 {"block_n=96", 0.03306},
                                 {"block_n=112", 0.01123},
                                 {"min_blocks=2", 0.1004},
                                 {"stages=3", -0.02078},
                                 {"compact_mask", -0.02078},
                                 {"raster_reversed", 0.0218},
                                 {"block_m=256", 0.1649},
                                 {"min_blocks=3", 0.2457},
                                 {"stages=4", -0.005835},
                                 {"stages=6", -0.01224},
                                 {"rescale_threshold=0,online", 0.05055},
                                 {"rescale_threshold=0,anchored", 0.00137},
                                 {"query_stages=2", 0.01444},
                                 {"turn_taking,block_m=128", -0.0009443},
                                 {"turn_taking,block_m=192", 0.02722},
                                 {"turn_taking,block_m=256", 0.02938},
                                 {"grid=tile", 0.05222},
                                 {"grid=dynamic", -0.02815},
                                 {"split_last", -0.009332},
                                 {"split_tiles=0,online", -0.01211},
                                 {"split_tiles=0,anchored", -0.03898},
                                 {"producer_registers=40", -0.006331},
                                 {"producer_registers=56", -0.01998},
                                 {"raster_mib=4", 0.008989},
                                 {"raster_mib=4096", 0.02235},
                                 {"imbalance", 0.5689},
                                 {"changes", 0.01448}}},
                               {"portable_forward",
                                {{"tensor", 0.7291},
                                 {"exp_online", 0.6776},
                                 {"exp_anchored", 0.3},
                                 {"mask", 1.472},
                                 {"tile_latency", 0.2397},
                                 {"key_latency", 0.2505},
                                 {"product_latency", 0.1214},
                                 {"memory", 0.5297},
                                 {"item", 4.61},
                                 {"part", 0.5},
                                 {"launch", 1.225},
                                 {"block_m=64", -0.194},
                                 {"block_m=192", 0.1231},
                                 {"block_n=32", 0.1166},
                                 {"block_n=48", 0.1026},
                                 {"block_n=64", 0.06098},
                                 {"block_n=80", 0.05737},
                                 {"block_n=96", 0.0127},
                                 {"block_n=112", 0.02901},
                                 {"min_blocks=2", -0.01715},
                                 {"stages=3", 0.009236},
                                 {"compact_mask", 0.03014},
                                 {"raster_reversed", 0.006618},
                                 {"chunk_n=16", 0.2318},
                                 {"chunk_n=32", 0.118},
                                 {"chunk_n=48", 0.05705},
                                 {"chunk_n=64", 0.04734},
                                 {"warps=8,block_m=64", 0},
                                 {"warps=8,block_m=128", 0.2277},
                                 {"warps=8,block_m=192", 0},
                                 {"stages=1", 0.0529},
                                 {"overlap_scores", 0.01848},
                                 {"query_in_registers", -0.03113},
                                 {"rescale_threshold=0", 0.07107},
                                 {"raster_heads=1", -0.007744},
                                 {"raster_heads=32", 0.003799},
                                 {"imbalance", 0.8101},
                                 {"changes", 0.008243}}}};

tuner::CostModel modelOf(const FittedCosts &fitted) {
  tuner::CostModel model = **costModelStart(fitted.family);
  for (const tuner::CostParameter &value : fitted.values) {
    tuner::CostParameter *parameter = model.find(value.name);
    assert(parameter && "the model has no such parameter");
    *parameter = value;
  }
  return model;
}

} // namespace

const tuner::CostModel *shippedCosts(const std::string &skeleton) {
  static const std::vector<tuner::CostModel> shipped = [] {
    std::vector<tuner::CostModel> all;
    std::transform(std::begin(kFitted), std::end(kFitted), std::back_inserter(all), modelOf);
    return all;
  }();
  const auto found = std::find_if(shipped.begin(), shipped.end(),
                                  [&](const tuner::CostModel &model) { return model.family == skeleton; });
  return found == shipped.end() ? nullptr : &*found;
}

} // namespace heddle
