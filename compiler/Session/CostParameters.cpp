//===- CostParameters.cpp - the cost model's parameters as data -----------===//
// What `heddle model fit` makes of tests/data/tuner/h200_*.csv, of each family by itself;
// tests/unit/cost_model_test.cpp holds one against the other. The terms are relative to the data sheet's rates, so that
// other GPUs are predicted with their own row.
//===----------------------------------------------------------------------===//
#include "compiler/Session/ScheduleCost.h"
#include "runtime/Core/ReadFile.h"

#include <sstream>

namespace heddle {
namespace {

constexpr const char *kParameters[] = {R"(family sm90_forward
term tensor 0.2751
term exp_online 0.2417
term exp_anchored 0.1953
term mask 0.1099
term tile_latency 0.3478
term key_latency 1.717
term product_latency 0.2286
term memory 0.1028
term item 3.782
term part 58.19
term launch 0.818
factor block_m=64 -0.1944
factor block_m=192 0.1045
factor block_n=32 0.3743
factor block_n=48 0.2042
factor block_n=64 0.1049
factor block_n=80 0.06422
factor block_n=96 0.03459
factor block_n=112 0.01229
factor min_blocks=2 0.1016
factor stages=3 -0.02094
factor compact_mask -0.01964
factor raster_reversed 0.02187
factor block_m=256 0.1637
factor min_blocks=3 0.2472
factor stages=4 -0.006501
factor stages=6 -0.0119
factor rescale_threshold=0,online 0.05336
factor rescale_threshold=0,anchored 0.0002507
factor query_stages=2 0.01382
factor turn_taking,block_m=128 -0.001733
factor turn_taking,block_m=192 0.02776
factor turn_taking,block_m=256 0.02852
factor grid=tile 0.05256
factor grid=dynamic -0.02815
factor split_last -0.00784
factor split_tiles=0,online -0.01206
factor split_tiles=0,anchored -0.04136
factor producer_registers=40 -0.005086
factor producer_registers=56 -0.01923
factor raster_mib=4 0.00889
factor raster_mib=4096 0.02218
factor imbalance 0.571
factor changes 0.01337
)",
                                       R"(family portable_forward
term tensor 0.7291
term exp_online 0.6776
term exp_anchored 0.3
term mask 1.472
term tile_latency 0.2397
term key_latency 0.2505
term product_latency 0.1214
term memory 0.5297
term item 4.61
term part 0.5
term launch 1.225
factor block_m=64 -0.194
factor block_m=192 0.1231
factor block_n=32 0.1166
factor block_n=48 0.1026
factor block_n=64 0.06098
factor block_n=80 0.05737
factor block_n=96 0.0127
factor block_n=112 0.02901
factor min_blocks=2 -0.01715
factor stages=3 0.009236
factor compact_mask 0.03014
factor raster_reversed 0.006618
factor chunk_n=16 0.2318
factor chunk_n=32 0.118
factor chunk_n=48 0.05705
factor chunk_n=64 0.04734
factor warps=8,block_m=64 0
factor warps=8,block_m=128 0.2277
factor warps=8,block_m=192 0
factor stages=1 0.0529
factor overlap_scores 0.01848
factor query_in_registers -0.03113
factor rescale_threshold=0 0.07107
factor raster_heads=1 -0.007744
factor raster_heads=32 0.003799
factor imbalance 0.8101
factor changes 0.008243
)"};

} // namespace

static Result<tuner::CostModel> parseModel(std::string_view text) {
  const std::string family = tuner::CostModel::familyOf(text);
  HEDDLE_ASSIGN(const tuner::CostModel *start, costModelStart(family.empty() ? "sm90_forward" : family));
  return tuner::CostModel::parse(*start, text);
}

const ShippedCosts *shippedCosts(const std::string &skeleton) {
  static const std::vector<ShippedCosts> shipped = [] {
    std::vector<ShippedCosts> all;
    for (const char *text : kParameters)
      if (Result<tuner::CostModel> model = parseModel(text))
        all.push_back({model.take(), "h200"});
    return all;
  }();
  for (const ShippedCosts &costs : shipped)
    if (costs.model.family == skeleton)
      return &costs;
  return nullptr;
}

Result<tuner::CostModel> loadCostModel(const std::string &path) {
  HEDDLE_ASSIGN(const std::string text, readTextFile(path, {"cost model"}));
  Result<tuner::CostModel> model = parseModel(text);
  if (!model)
    return Status(model.status().code(), "cost model '" + path + "': " + model.status().message());
  return model;
}

} // namespace heddle
