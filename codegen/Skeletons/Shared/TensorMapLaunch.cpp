#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/ForwardConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

#include <optional>
#include <set>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kBoxBytes = sm90::kColumnRowBytes;

LaunchExpr strideBytes(const MapOperand &operand, StrideDim of, int64_t times = 1) {
  const int64_t bytes = times * dtypeBytes(operand.type);
  if (!operand.copy)
    return LaunchExpr(strideOf(operand.role, of)) * bytes;
  const LaunchExpr row(operand.dim * bytes);
  if (of == StrideDim::row)
    return row;
  const LaunchExpr head = max(operand.rows, 1) * row;
  return of == StrideDim::head ? head : head * operand.heads;
}

TensorMapSpec mapOf(const MapOperand &operand, int64_t rate, bool isLong) {
  const LaunchExpr rows = operand.rows;
  TensorMapSpec map;
  map.source = operand.copy.value_or(operand.role);
  map.dtype = operand.type;
  map.isTf32 = operand.type == DType::fp32 && !operand.copy; // products of warpgroups are of no other floats
  // narrower rows, which no product reads, lie one behind the other
  const int64_t rowBytes = operand.dim * dtypeBytes(operand.type);
  const bool isNarrow = operand.copy && rowBytes < kBoxBytes / 2;
  map.swizzleBytes = isNarrow ? 0 : kBoxBytes;
  map.dims = {operand.dim, max(isLong ? ceilDiv(rows, rate) : floorDiv(rows, rate), 1),
              isLong ? max(mod(rows, rate), 1) : LaunchExpr(rate), operand.heads, Symbol::batch};
  map.strideBytes = {strideBytes(operand, StrideDim::row, rate), strideBytes(operand, StrideDim::row),
                     strideBytes(operand, StrideDim::head), strideBytes(operand, StrideDim::batch)};
  map.box = {isNarrow ? operand.dim : kBoxBytes / dtypeBytes(operand.type), operand.boxRows, 1, 1, 1};
  return map;
}

// Of a tensor of keys: those of even numbers, or the odd ones. No map names a row beyond the sequence.
TensorMapSpec halfMap(const MapOperand &keys, bool isOdd) {
  constexpr int64_t kHalves = sm90::kKeyHalves;
  const LaunchExpr rows = keys.rows;
  TensorMapSpec map = mapOf(keys, kHalves, /*isLong=*/false);
  if (isOdd)
    map.offsetBytes = strideBytes(keys, StrideDim::row) * min(floorDiv(rows, kHalves), 1);
  map.dims[1] = max(isOdd ? floorDiv(rows, kHalves) : ceilDiv(rows, kHalves), 1);
  map.dims[2] = 1;
  map.box[1] = keys.boxRows / kHalves;
  return map;
}

// Rows of keys, one for each dimension.
TensorMapSpec keyMajorMap(const MapOperand &values) {
  TensorMapSpec map = mapOf(values, 1, /*isLong=*/false);
  map.dims = {max(LaunchExpr(values.rows), 1), values.dim, 1, values.heads, Symbol::batch};
  if (values.copy) {
    const LaunchExpr pitch = turnedPitch(values.rows), head = pitch * values.dim;
    map.strideBytes = {pitch, pitch, head, head * values.heads};
  }
  map.box = {sm90::kArrivingKeys, values.dim, 1, 1, 1};
  map.swizzleBytes = kBoxBytes; // narrow copies have none
  return map;
}

void appendAllMaps(KernelLaunch &launch, const KernelRequest &request, const ForwardConfig &config,
                   const OperandCopies &copies) {
  const std::optional<PairedOperands> &pairs = copies.pairs;
  const MapRates rates = MapRates::of(request.variants);
  const int64_t perRate = rates.mapsPerRate();
  MapOperand q = {Role::q, request.elements.q, Symbol::seqlenQ, Symbol::heads, request.headDim, config.blockM};
  MapOperand k = {Role::k, request.elements.k, Symbol::seqlenK, Symbol::kvHeads, request.headDim, config.blockN};
  MapOperand v = {Role::v, request.elements.v, Symbol::seqlenK, Symbol::kvHeads, request.valueDim, config.blockN};
  if (pairs) {
    const auto toPairs = [](MapOperand &operand, const PointerSource &copy, int64_t step) {
      operand.copy = copy, operand.type = DType::fp16, operand.dim = sm90::pairedDim<int64_t>(operand.dim, step);
    };
    toPairs(q, pairs->q, sm90::kPairStep);
    toPairs(k, pairs->k, sm90::kPairStep);
    toPairs(v, pairs->v, sm90::kPairColumn);
  }
  appendTensorMaps(launch, q, rates.query, perRate);
  if (request.kind.hasKeyMajorValues || copies.turnedValues) {
    v.copy = copies.turnedValues;
    for (bool isOdd : {false, true})
      launch.appendTensorMap(halfMap(k, isOdd));
    launch.appendTensorMap(keyMajorMap(v));
    return;
  }
  appendTensorMaps(launch, k, rates.key, perRate);
  appendTensorMaps(launch, v, rates.key, perRate);
  if (pairs) {
    MapOperand factors = k;
    factors.copy = pairs->keyFactors, factors.type = kAccumulator;
    factors.dim = sm90::kKeyFactorBytes / dtypeBytes(kAccumulator);
    appendTensorMaps(launch, factors, rates.key, perRate);
  }
}

} // namespace

LaunchExpr turnedPitch(LaunchSymbol keys) {
  return max(ceilDiv(LaunchExpr(keys), sm90::kTurnedVector), 1) * LaunchExpr(sm90::kTurnedVector);
}

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

static LaunchExpr rasterKvPairs(const KernelRequest &request, const ForwardConfig &config) {
  const int64_t bytesOfKey =
      request.headDim * dtypeBytes(request.elements.k) + request.valueDim * dtypeBytes(request.elements.v);
  const LaunchExpr bytesOfHead = max(Symbol::seqlenK, 1) * bytesOfKey;
  return floorDiv(config.rasterMib * (int64_t(1) << 20), bytesOfHead);
}

LaunchExpr rasterPairs(const KernelRequest &request, const ForwardConfig &config) {
  const LaunchExpr pairs = rasterKvPairs(request, config) * floorDiv(Symbol::heads, Symbol::kvHeads);
  return max(min(pairs, LaunchExpr(Symbol::batch) * Symbol::heads), 1);
}

void appendTensorMapParams(KernelLaunch &launch, const KernelRequest &request, const ForwardConfig &config,
                           const PointerSource &schedule, const OperandCopies &copies,
                           const std::optional<PointerSource> &totals) {
  appendOperands(launch, request);
  appendRowRange(launch, request);
  if (request.element().isScaled())
    for (Role factor : {Role::descaleQ, Role::descaleK, Role::descaleV})
      launch.appendPointer(factor);
  if (copies.pairs)
    launch.appendPointer(copies.pairs->queryFactors);
  if (totals)
    launch.appendPointer(*totals);
  if (copies.turnedValues) {
    launch.appendPointer(Role::v);
    launch.appendPointer(*copies.turnedValues);
    appendStrides(launch, Role::v);
    launch.appendPointer(*copies.turnedMarks);
    launch.appendI32(max(min(rasterKvPairs(request, config), LaunchExpr(Symbol::batch) * Symbol::kvHeads), 1));
  }
  appendAllMaps(launch, request, config, copies);
  for (const PointerSource &source : {PointerSource(Role::out), PointerSource(Role::lse), PointerSource(Role::carryOut),
                                      PointerSource(Role::carryLse), schedule})
    launch.appendPointer(source);
  appendStrides(launch, Role::out);
  appendCallSizes(launch, request.qOrigin);
  launch.appendI32(workItems(request, config));
  launch.appendI32(rasterPairs(request, config));
  appendRuntimeSizes(launch, request);
}

int64_t tensorMapParamBytes(const KernelRequest &request, const OperandCopies &copies) {
  KernelLaunch launch;
  appendTensorMapParams(launch, request, ForwardConfig(), PointerSource::region(0), copies);
  return launch.paramBytes;
}

} // namespace heddle
