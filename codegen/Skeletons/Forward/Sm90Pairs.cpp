#include "codegen/Skeletons/Forward/Sm90Pairs.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;
using Symbol = LaunchSymbol;

constexpr const char *kEntry = "heddle_pair_rows";
constexpr int64_t kThreads = 256, kLaneColumns = 4, kFp16Bytes = 2, kFloatBytes = 4;

/// A power of two that has a lane for every four columns of either row.
int64_t pairLanes(const KernelRequest &request) {
  const Sm90Tiles tiles = sm90Tiles(request);
  int64_t lanes = 1;
  while (lanes * kLaneColumns < std::max(tiles.headDim, tiles.valueDim) / 2)
    lanes *= 2;
  return lanes;
}
int64_t pairRows(const KernelRequest &request) { return kThreads / pairLanes(request); }

LaunchExpr rowsOf(Symbol heads, Symbol rows) { return LaunchExpr(Symbol::batch) * heads * rows; }

} // namespace

bool sm90MakesPairs(const KernelRequest &request) {
  return request.elements.q == DType::fp32 && request.elements.precision == Precision::exact;
}

Sm90Tiles sm90Tiles(const KernelRequest &request) {
  if (!sm90MakesPairs(request))
    return {request.headDim, request.valueDim, request.element().bytes, ProductTraits::of(request)};
  ProductTraits product = ProductTraits::of(request);
  product.deviceName = "FloatPair";
  product.bytes = kFp16Bytes;
  product.mmaStep = kPairStep;
  return {pairedDim<int64_t>(request.headDim, kPairStep), pairedDim<int64_t>(request.valueDim, kPairColumn), kFp16Bytes,
          product};
}

PairedOperands appendPairRows(LaunchPlan &plan, const KernelRequest &request) {
  const Sm90Tiles tiles = sm90Tiles(request);
  const LaunchExpr queries = rowsOf(Symbol::heads, Symbol::seqlenQ), keys = rowsOf(Symbol::kvHeads, Symbol::seqlenK);
  const auto region = [&](const char *name, const LaunchExpr &rows, int64_t rowBytes) {
    return plan.appendRegion(name, rows * LaunchExpr(rowBytes), 0, 1);
  };
  const PairedOperands pairs{
      region("q_pairs", queries, tiles.headDim * tiles.bytes), region("k_pairs", keys, tiles.headDim * tiles.bytes),
      region("v_pairs", keys, tiles.valueDim * tiles.bytes), region("query_factors", queries, kFloatBytes),
      region("key_factors", keys, kKeyFactorBytes)};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.entry = kEntry;
  launch.grid[0] = LaunchExpr(Symbol::batch) * (LaunchExpr(Symbol::heads) + Symbol::kvHeads) *
                   ceilDiv(max(Symbol::seqlenQ, Symbol::seqlenK), pairRows(request));
  launch.block = kThreads;
  for (const auto &[from, to] :
       {std::pair(Role::q, pairs.q), std::pair(Role::k, pairs.k), std::pair(Role::v, pairs.v)}) {
    launch.appendPointer(from);
    launch.appendPointer(to);
  }
  launch.appendPointer(pairs.queryFactors);
  launch.appendPointer(pairs.keyFactors);
  for (Role role : {Role::q, Role::k, Role::v})
    appendStrides(launch, role);
  for (Symbol size : {Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK})
    launch.appendI32(size);
  return pairs;
}

KernelEntry pairRowsEntry() { return {kEntry, "Kernel::PairRows"}; }

void printPairRows(TraitsPrinter &printer, const KernelRequest &request) {
  printer.constant("kPairLanes", pairLanes(request));
  printer.constant("kPairRows", pairRows(request));
}

} // namespace heddle
