#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/ForwardConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

#include <set>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kBoxBytes = sm90::kColumnRowBytes;

LaunchExpr strideBytes(const MapOperand &operand, StrideDim of, int64_t times = 1) {
  return LaunchExpr(strideOf(operand.role, of)) * (times * dtypeBytes(operand.type));
}

TensorMapSpec mapOf(const MapOperand &operand, int64_t rate, bool isLong) {
  const LaunchExpr rows = operand.rows;
  TensorMapSpec map;
  map.source = operand.role;
  map.dtype = operand.type;
  map.isTf32 = operand.type == DType::fp32; // products of warpgroups are of no other floats
  map.swizzleBytes = kBoxBytes;
  map.dims = {operand.dim, max(isLong ? ceilDiv(rows, rate) : floorDiv(rows, rate), 1),
              isLong ? max(mod(rows, rate), 1) : LaunchExpr(rate), operand.heads, Symbol::batch};
  map.strideBytes = {strideBytes(operand, StrideDim::row, rate), strideBytes(operand, StrideDim::row),
                     strideBytes(operand, StrideDim::head), strideBytes(operand, StrideDim::batch)};
  map.box = {kBoxBytes / dtypeBytes(operand.type), operand.boxRows, 1, 1, 1};
  return map;
}

void appendAllMaps(KernelLaunch &launch, const KernelRequest &request, const ForwardConfig &config) {
  const MapRates rates = MapRates::of(request.variants);
  const int64_t perRate = rates.mapsPerRate();
  const MapOperand q = {Role::q, request.elements.q, Symbol::seqlenQ, Symbol::heads, request.headDim, config.blockM};
  const MapOperand k = {Role::k, request.elements.k, Symbol::seqlenK, Symbol::kvHeads, request.headDim, config.blockN};
  const MapOperand v = {Role::v, request.elements.v, Symbol::seqlenK, Symbol::kvHeads, request.valueDim, config.blockN};
  appendTensorMaps(launch, q, rates.query, perRate);
  appendTensorMaps(launch, k, rates.key, perRate);
  appendTensorMaps(launch, v, rates.key, perRate);
}

} // namespace

void appendTensorMaps(KernelLaunch &launch, const MapOperand &operand, const std::vector<int64_t> &rates,
                      int64_t mapsPerRate) {
  for (int64_t rate : rates)
    for (int64_t kind = 0; kind < mapsPerRate; ++kind)
      launch.appendTensorMap(mapOf(operand, rate, kind == 1));
}

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

LaunchExpr workItems(const KernelRequest &request, const ForwardConfig &config) {
  return LaunchExpr(Symbol::batch) * Symbol::heads * itemsOfHead(request, config, config.blockM);
}

LaunchExpr rasterPairs(const KernelRequest &request, const ForwardConfig &config) {
  const int64_t bytesOfKey =
      request.headDim * dtypeBytes(request.elements.k) + request.valueDim * dtypeBytes(request.elements.v);
  const LaunchExpr bytesOfHead = max(Symbol::seqlenK, 1) * bytesOfKey;
  const LaunchExpr kvPairs = floorDiv(config.rasterMib * (int64_t(1) << 20), bytesOfHead);
  const LaunchExpr pairs = kvPairs * floorDiv(Symbol::heads, Symbol::kvHeads);
  return max(min(pairs, LaunchExpr(Symbol::batch) * Symbol::heads), 1);
}

void appendTensorMapParams(KernelLaunch &launch, const KernelRequest &request, const ForwardConfig &config,
                           const PointerSource &schedule) {
  appendOperands(launch, request);
  appendRowRange(launch, request);
  if (request.element().isScaled())
    for (Role factor : {Role::descaleQ, Role::descaleK, Role::descaleV})
      launch.appendPointer(factor);
  appendAllMaps(launch, request, config);
  for (const PointerSource &source : {PointerSource(Role::out), PointerSource(Role::lse), PointerSource(Role::carryOut),
                                      PointerSource(Role::carryLse), schedule})
    launch.appendPointer(source);
  appendStrides(launch, Role::out);
  appendCallSizes(launch, request.qOrigin);
  launch.appendI32(workItems(request, config));
  launch.appendI32(rasterPairs(request, config));
  appendRuntimeSizes(launch, request);
}

int64_t tensorMapParamBytes(const KernelRequest &request) {
  KernelLaunch launch;
  appendTensorMapParams(launch, request, ForwardConfig(), PointerSource::region(0));
  return launch.paramBytes;
}

} // namespace heddle
