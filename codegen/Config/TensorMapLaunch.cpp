//===- TensorMapLaunch.cpp - tensor maps and the fields behind them -------------------------===//
#include "codegen/Config/TensorMapLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"

#include <algorithm>
#include <set>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kElementBytes = 2;
constexpr int64_t kBoxBytes = 128; // one row of a swizzled tile

// One of q, k and v: its sizes, and its strides in elements.
struct Operand {
  PointerSource::Kind pointer;
  Symbol rows, heads;
  Symbol strideBatch, strideRow, strideHead;
  int64_t dim;
  int64_t boxRows;
};

LaunchExpr bytes(Symbol stride) { return LaunchExpr(stride) * kElementBytes; }

TensorMapSpec mapOf(const Operand &operand, DType dtype, int64_t rate, bool isLong) {
  const LaunchExpr rows = operand.rows;
  TensorMapSpec map;
  map.source = {operand.pointer, 0};
  map.dtype = dtype;
  map.swizzleBytes = kBoxBytes;
  map.dims = {operand.dim, max(isLong ? ceilDiv(rows, rate) : floorDiv(rows, rate), 1),
              isLong ? max(mod(rows, rate), 1) : LaunchExpr(rate), operand.heads, Symbol::batch};
  map.strideBytes = {LaunchExpr(operand.strideRow) * (rate * kElementBytes), bytes(operand.strideRow),
                     bytes(operand.strideHead), bytes(operand.strideBatch)};
  map.box = {kBoxBytes / kElementBytes, operand.boxRows, 1, 1, 1};
  return map;
}

void appendMaps(LaunchPlan &plan, const Operand &operand, DType dtype, const std::vector<int64_t> &rates,
                int64_t mapsPerRate) {
  for (int64_t rate : rates)
    for (int64_t kind = 0; kind < mapsPerRate; ++kind)
      plan.appendTensorMap(mapOf(operand, dtype, rate, kind == 1));
}

void appendAllMaps(LaunchPlan &plan, const KernelRequest &request, const KernelConfig &config) {
  const MapRates rates = MapRates::of(request.variants);
  const int64_t perRate = rates.mapsPerRate();
  const Operand q = {PointerSource::Kind::q, Symbol::seqlenQ,     Symbol::heads,   Symbol::qStrideBatch,
                     Symbol::qStrideRow,     Symbol::qStrideHead, request.headDim, config.blockM};
  const Operand k = {PointerSource::Kind::k, Symbol::seqlenK,     Symbol::kvHeads, Symbol::kStrideBatch,
                     Symbol::kStrideRow,     Symbol::kStrideHead, request.headDim, config.blockN / clusterBlocks(config)};
  const Operand v = {PointerSource::Kind::v, Symbol::seqlenK,     Symbol::kvHeads,  Symbol::vStrideBatch,
                     Symbol::vStrideRow,     Symbol::vStrideHead, request.valueDim, config.blockN / clusterBlocks(config)};
  appendMaps(plan, q, request.dtype, rates.query, perRate);
  appendMaps(plan, k, request.dtype, rates.key, perRate);
  appendMaps(plan, v, request.dtype, rates.key, perRate);
}

} // namespace

MapRates MapRates::of(const std::vector<VariantRates> &variants) {
  std::set<int64_t> query, key;
  for (const VariantRates &variant : variants) {
    query.insert(variant.queryRate);
    key.insert(variant.keyRates.begin(), variant.keyRates.end());
  }
  return {{query.begin(), query.end()}, {key.begin(), key.end()}};
}

int64_t MapRates::mapsPerRate() const {
  const bool isDense = query == std::vector<int64_t>{1} && key == std::vector<int64_t>{1};
  return isDense ? 1 : 2;
}

int64_t MapRates::mapCount() const { return mapsPerRate() * static_cast<int64_t>(query.size() + 2 * key.size()); }

int64_t clusterBlocks(const KernelConfig &config) { return std::max<int64_t>(config.cluster, 1); }

LaunchExpr workItems(const KernelRequest &request, const KernelConfig &config) {
  return LaunchExpr(Symbol::batch) * Symbol::heads * itemsOfHead(request, config, config.blockM * clusterBlocks(config));
}

LaunchExpr rasterPairs(const KernelRequest &request, const KernelConfig &config) {
  const LaunchExpr bytesOfHead = max(Symbol::seqlenK, 1) * ((request.headDim + request.valueDim) * kElementBytes);
  const LaunchExpr kvPairs = floorDiv(config.rasterMib * (int64_t(1) << 20), bytesOfHead);
  const LaunchExpr pairs = kvPairs * floorDiv(Symbol::heads, Symbol::kvHeads);
  return max(min(pairs, LaunchExpr(Symbol::batch) * Symbol::heads), 1);
}

void appendTensorMapParams(LaunchPlan &plan, const KernelRequest &request, const KernelConfig &config) {
  using Pointer = PointerSource::Kind;
  appendOperands(plan, request);
  appendRowRange(plan, request);
  appendAllMaps(plan, request, config);
  for (Pointer kind : {Pointer::out, Pointer::lse, Pointer::carryOut, Pointer::carryLse, Pointer::workspace})
    plan.appendPointer({kind, 0});
  for (Symbol stride : {Symbol::outStrideBatch, Symbol::outStrideRow, Symbol::outStrideHead})
    plan.appendI64(stride);
  appendCallSizes(plan, request.qOrigin);
  plan.appendI32(workItems(request, config));
  plan.appendI32(rasterPairs(request, config));
  appendRuntimeSizes(plan, request);
}

int64_t tensorMapParamBytes(const KernelRequest &request) {
  LaunchPlan plan;
  appendTensorMapParams(plan, request, KernelConfig());
  return plan.paramBytes;
}

} // namespace heddle
