#include "codegen/Skeletons/Backward/Sm90Raised.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;
using Symbol = LaunchSymbol;

constexpr const char *kEntry = "heddle_raise_rows";
constexpr int64_t kThreads = 256, kLaneColumns = 4, kFp16Bytes = 2;

int64_t partsOf(const KernelRequest &request) { return request.isExact() ? 2 : 1; }
int64_t rowDim(const KernelRequest &request, int64_t dim) {
  return partsOf(request) * (pairedDim<int64_t>(dim, kPairColumn) / 2);
}

/// A power of two that has a lane for every four columns of either row.
int64_t raisedLanes(const KernelRequest &request) {
  int64_t lanes = 1;
  while (lanes * kLaneColumns < pairedDim<int64_t>(std::max(request.headDim, request.valueDim), kPairColumn) / 2)
    lanes *= 2;
  return lanes;
}
int64_t raisedRows(const KernelRequest &request) { return kThreads / raisedLanes(request); }

} // namespace

bool isRaised(const KernelRequest &request) { return request.elements.q == DType::fp32; }

int64_t backwardTileBytes(const KernelRequest &request, int64_t rows, int64_t dim) {
  const ProductTraits product = backwardProduct(request);
  return (isRaised(request) ? partsOf(request) : 1) * tileBytes(rows, dim, product.bytes);
}

ProductTraits backwardProduct(const KernelRequest &request) {
  ProductTraits product = ProductTraits::of(request);
  if (!isRaised(request))
    return product;
  product.deviceName = request.isExact() ? "FloatPair" : "RaisedFloat";
  product.bytes = kFp16Bytes;
  product.mmaStep = kPairStep;
  return product;
}

RaisedRows appendRaiseRows(BackwardPlan &to, int64_t last) {
  const KernelRequest &request = to.request;
  const LaunchExpr queries = to.heads * LaunchExpr(Symbol::seqlenQ),
                   keys = LaunchExpr(Symbol::batch) * Symbol::kvHeads * Symbol::seqlenK;
  const auto region = [&](const char *name, const LaunchExpr &rows, int64_t rowBytes) {
    return to.plan.appendRegion(name, rows * LaunchExpr(rowBytes), 0, last);
  };
  const int64_t headBytes = rowDim(request, request.headDim) * kFp16Bytes,
                valueBytes = rowDim(request, request.valueDim) * kFp16Bytes;
  const RaisedRows rows{region("q_raised", queries, headBytes),
                        region("d_out_raised", queries, valueBytes),
                        region("k_raised", keys, headBytes),
                        region("v_raised", keys, valueBytes),
                        to.appendRows("query_factors", to.rateSets, 0, last),
                        to.appendRows("out_factors", to.rateSets, 0, last),
                        region("key_factors", keys, kKeyFactorBytes)};
  const LaunchExpr blocks = ceilDiv(max(to.statisticsRows, Symbol::seqlenK), raisedRows(request));
  KernelLaunch &launch =
      to.append(kEntry, LaunchExpr(Symbol::batch) * (LaunchExpr(Symbol::heads) + Symbol::kvHeads) * blocks, kThreads);
  for (const auto &[from, copy] : {std::pair(Role::q, rows.q), std::pair(Role::dOut, rows.dOut),
                                   std::pair(Role::k, rows.k), std::pair(Role::v, rows.v)}) {
    launch.appendPointer(from);
    launch.appendPointer(copy);
  }
  for (const PointerSource &factors : {rows.queryFactors, rows.outFactors, rows.keyFactors})
    launch.appendPointer(factors);
  for (Role role : {Role::q, Role::dOut, Role::k, Role::v})
    appendStrides(launch, role);
  for (Symbol size : {Symbol::batch, Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK})
    launch.appendI32(size);
  launch.appendI32(to.statisticsRows);
  return rows;
}

KernelEntry raiseRowsEntry() { return {kEntry, "Kernel::RaiseRows"}; }

void printRaiseRows(TraitsPrinter &printer, const KernelRequest &request) {
  printer.constant("kPairLanes", raisedLanes(request));
  printer.constant("kPairRows", raisedRows(request));
}

MapOperand raisedOperand(const KernelRequest &request, MapOperand operand, const PointerSource &copy) {
  operand.copy = copy;
  operand.type = DType::fp16;
  operand.dim = rowDim(request, operand.dim);
  return operand;
}

MapOperand keyFactorOperand(const RaisedRows &rows, int64_t boxRows) {
  return {Role::k, kAccumulator,   Symbol::seqlenK, Symbol::kvHeads, kKeyFactorBytes / dtypeBytes(kAccumulator),
          boxRows, rows.keyFactors};
}

} // namespace heddle
