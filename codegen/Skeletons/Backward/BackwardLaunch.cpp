#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/TraitsPrinter.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

constexpr int64_t kRowWarps = 8;

/// Rows of a block of heddle_backward_preprocess: whole steps of its warps (row_pieces.cuh), of which narrow rows have
/// many.
int64_t preprocessRows(const KernelRequest &request) {
  constexpr int64_t kLeast = 64, kPieceBytes = 16;
  int64_t lanesOfRow = 1;
  while (lanesOfRow * kPieceBytes < request.valueDim * dtypeBytes(request.elements.out) && lanesOfRow < kWarpLanes)
    lanesOfRow *= 2;
  return std::max(kLeast, kRowWarps * kWarpLanes / lanesOfRow);
}

std::vector<GradientSlot> gradientsOfScores(const KernelRequest &request) {
  std::vector<GradientSlot> slots;
  for (const GradientSlot &slot : request.wantedGradients())
    if (slot.isOfScores)
      slots.push_back(slot);
  return slots;
}

std::optional<GradientSlot> gradientOfSink(const KernelRequest &request) {
  for (const GradientSlot &slot : request.wantedGradients())
    if (slot.isOfSink)
      return slot;
  return std::nullopt;
}

/// SinkParams of backward_rows.cuh.
void appendSink(KernelLaunch &launch, const KernelRequest &request, const GradientSlot &sink) {
  appendOperands(launch, request);
  launch.appendPointer(PointerSource::gradient(sink.argument));
  launch.appendI32(Symbol::seqlenK);
  launch.appendI32(qOriginExpr(request.qOrigin));
  launch.appendI32(Symbol::kOrigin);
  appendRuntimeSizes(launch, request);
}

/// How many times as far apart as those of its own class the keys of a head may lie that shares them with others.
int64_t mostCoarser(const KernelRequest &request) {
  int64_t common = 1, divisor = 0;
  for (const VariantRates &variant : request.transposed) {
    common = std::lcm(common, variant.queryRate);
    divisor = std::gcd(divisor, variant.queryRate);
  }
  return common / divisor;
}

/// The constants of all gradients of scores, if there are any.
template <class Number>
void printGradients(TraitsPrinter &printer, const char *name, const std::vector<GradientSlot> &slots,
                    const Number &number) {
  std::vector<int64_t> numbers;
  for (const GradientSlot &slot : slots)
    numbers.push_back(number(slot));
  if (!numbers.empty())
    printer.array(name, numbers);
}

void printArgumentTraits(TraitsPrinter &printer, const KernelRequest &request) {
  const std::vector<GradientSlot> slots = gradientsOfScores(request);
  const std::optional<GradientSlot> sink = gradientOfSink(request);
  printer.constant("kSinkGradient", !sink ? 0 : sink->hasHeads ? 2 : 1);
  printer.constant("kGradientCount", int64_t(slots.size()));
  printGradients(printer, "kGradientOf", slots, [](const GradientSlot &slot) { return slot.argument; });
  printGradients(printer, "kGradientIsStored", slots, [](const GradientSlot &slot) { return slot.hasPairs; });
  printGradients(printer, "kGradientIsShared", slots, [](const GradientSlot &slot) { return slot.isShared; });
}

void appendRowSizes(KernelLaunch &launch) {
  for (Symbol size : {Symbol::batch, Symbol::heads, Symbol::seqlenQ})
    launch.appendI32(size);
}

/// The rows of all classes of the rate that has most, in whole tiles.
template <class Rates> LaunchExpr tilesOfHead(LaunchSymbol rows, const Rates &rates, int64_t tileRows) {
  LaunchExpr most = 0;
  for (int64_t rate : rates)
    most = max(most, LaunchExpr(rate) * ceilDiv(ceilDiv(rows, rate), tileRows));
  return most;
}

} // namespace

std::vector<int64_t> keyItemRates(const KernelRequest &request) {
  std::set<int64_t> rates;
  for (const VariantRates &variant : request.transposed) {
    const std::set<int64_t> before = rates;
    rates.insert(variant.queryRate);
    for (int64_t rate : before)
      rates.insert(std::lcm(rate, variant.queryRate));
  }
  return {rates.begin(), rates.end()};
}

std::vector<KernelEntry> backwardEntries() {
  return {{"heddle_backward_preprocess", "Kernel::BackwardPreprocess"},
          {"heddle_convert_dq", "Kernel::ConvertDq"},
          {"heddle_kernel", "Kernel"},
          {"heddle_query_walk", "Kernel::QueryWalk"},
          {"heddle_branch_deltas", "Kernel::BranchDeltas"}};
}

BackwardPlan::BackwardPlan(const KernelRequest &request, int64_t blockM, int64_t blockN,
                           const std::vector<int64_t> &queryRates)
    : request(request), blockM(blockM), rateSets(int64_t(queryRates.size())), plan(planFor(request, 1)),
      heads(LaunchExpr(Symbol::batch) * Symbol::heads),
      statisticsRows(tilesOfHead(Symbol::seqlenQ, queryRates, blockM) * LaunchExpr(blockM)) {
  const TileGrain grain(request, blockM, blockN);
  if (grain.tilesAreWhole || grain.square > 1)
    plan.serves.keyOriginStep = keyOriginStep(request, grain.tilesAreWhole ? blockN : grain.square);
  if (request.isDetached && request.kind.addsTo(Role::dK))
    plan.serves.keyOriginStep = 0;
}

TileGrain::TileGrain(const KernelRequest &request, int64_t blockM, int64_t blockN)
    : tilesAreWhole(0), square(1), hasBand(false) {
  constexpr int64_t kWarpRows = 16, kMostColumns = 64;
  const int64_t coarser = mostCoarser(request);
  if (coarser == 1)
    tilesAreWhole = request.tilesAreWhole(std::max(blockM, blockN), std::max(blockM, blockN));
  hasBand = request.grain == 1;
  const int64_t grain = hasBand ? request.bandedGrain : request.grain;
  const int64_t common = std::gcd(grain % coarser == 0 ? grain / coarser : 1, std::min(blockM, kMostColumns));
  if (common % kWarpRows == 0 && request.keepsTilesInBand(common * coarser, common * coarser))
    square = common;
}

void TileGrain::print(TraitsPrinter &printer) const {
  printer.constant("kTilesAreWhole", tilesAreWhole);
  printer.constant("kSquare", square);
  printer.constant("kSquaresHaveBand", square > 1 && hasBand);
}

KernelLaunch &BackwardPlan::append(const char *entry, LaunchExpr grid, int64_t threads) {
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.entry = entry;
  launch.grid[0] = std::move(grid);
  launch.block = threads;
  return launch;
}

PointerSource BackwardPlan::appendRows(const char *name, int64_t sets, int64_t first, int64_t last) {
  return plan.appendRegion(name, rowsOf(sets) * LaunchExpr(kFloatBytes), first, last);
}

LaunchExpr BackwardPlan::rowsOf(int64_t sets) const { return LaunchExpr(sets) * heads * statisticsRows; }

int64_t BackwardPlan::branches() const { return int64_t(request.transposed.front().keyRates.size()); }

void appendGradients(KernelLaunch &launch, const KernelRequest &request) {
  for (const GradientSlot &slot : gradientsOfScores(request))
    launch.appendPointer(PointerSource::gradient(slot.argument));
}

void appendPreprocess(BackwardPlan &to, const Statistics &statistics) {
  KernelLaunch &launch =
      to.append("heddle_backward_preprocess", to.heads * ceilDiv(to.statisticsRows, preprocessRows(to.request)),
                kWarpLanes * kRowWarps);
  for (const GradientSlot &slot : to.request.wantedGradients())
    launch.clears.push_back({PointerSource::gradient(slot.argument), 0, slot.elements, 0});
  if (const std::optional<GradientSlot> sink = gradientOfSink(to.request))
    appendSink(launch, to.request, *sink);
  for (const PointerSource &source : {PointerSource(Role::out), PointerSource(Role::dOut), PointerSource(Role::lse),
                                      PointerSource(Role::dLse), statistics.lse, statistics.delta})
    launch.appendPointer(source);
  appendStrides(launch, Role::out);
  appendStrides(launch, Role::dOut);
  appendRowSizes(launch);
  launch.appendI32(to.statisticsRows);
}

ClearedRegion::ClearedRegion(BackwardPlan &to, const char *name, LaunchExpr given, int64_t first, int64_t last)
    : words(std::move(given)), place(to.plan.appendRegion(name, words * LaunchExpr(kFloatBytes), first, last)) {}

ClearedRegion dqAccumulation(BackwardPlan &to, int64_t columns, int64_t first, int64_t last) {
  const LaunchExpr words = to.heads * ceilDiv(Symbol::seqlenQ, to.blockM) * LaunchExpr(to.blockM * columns);
  return {to, "dq_accumulation", words, first, last};
}

ClearedRegion dqOrder(BackwardPlan &to, int64_t first, int64_t last) {
  return {to, "dq_order", to.heads * floorDiv(to.statisticsRows, to.blockM) + LaunchExpr(1), first, last};
}

void appendConvertDq(BackwardPlan &to, const PointerSource &sums, const PointerSource *order) {
  const int64_t groups = (to.request.headDim + kSumGroupColumns - 1) / kSumGroupColumns;
  const LaunchExpr pieces = to.heads * LaunchExpr(Symbol::seqlenQ) * LaunchExpr(groups);
  KernelLaunch &launch =
      to.append("heddle_convert_dq", ceilDiv(pieces, kWarpLanes * kRowWarps), kWarpLanes * kRowWarps);
  if (order)
    launch.appendPointer(*order);
  launch.appendPointer(sums);
  launch.appendPointer(Role::dQ);
  appendStrides(launch, Role::dQ);
  appendRowSizes(launch);
  launch.appendScaleLog2();
}

LaunchExpr keyItems(const KernelRequest &request, int64_t blockN) {
  return LaunchExpr(Symbol::batch) * Symbol::kvHeads * tilesOfHead(Symbol::seqlenK, keyItemRates(request), blockN);
}

LaunchExpr keyRaster(const KernelRequest &request, int64_t sumColumns, int64_t mib) {
  const int64_t bytesOfRow = (request.headDim + request.valueDim) * request.element().bytes + sumColumns * kFloatBytes;
  const LaunchExpr bytesOfHead = max(Symbol::seqlenQ, 1) * bytesOfRow * floorDiv(Symbol::heads, Symbol::kvHeads);
  return max(min(floorDiv(mib * (int64_t(1) << 20), bytesOfHead), LaunchExpr(Symbol::batch) * Symbol::kvHeads), 1);
}

LaunchExpr queryItems(const KernelRequest &request, int64_t blockN) {
  std::vector<int64_t> rates;
  for (const VariantRates &variant : request.variants)
    rates.push_back(variant.queryRate);
  return LaunchExpr(Symbol::batch) * Symbol::heads * tilesOfHead(Symbol::seqlenQ, rates, blockN);
}

LaunchExpr queryRaster(const KernelRequest &request, int64_t mib) {
  const int64_t bytesOfRow = (request.headDim + request.valueDim) * request.element().bytes;
  const LaunchExpr bytesOfHead = max(Symbol::seqlenK, 1) * bytesOfRow, group = floorDiv(Symbol::heads, Symbol::kvHeads);
  return max(min(floorDiv(mib * (int64_t(1) << 20), bytesOfHead) * group, LaunchExpr(Symbol::batch) * Symbol::heads),
             1);
}

Status checkOrderOfGradients(const KernelRequest &request) {
  if (!request.kind.isDeterministic || request.kind.gradientsOf.empty())
    return {};
  return Status::unsupported(
      "adds to gradients of numbers and tensors of the pattern in any order; those of q, k and v "
      "alone have the same bits in every run, all of them on the CPU");
}

void printRowTraits(TraitsPrinter &printer, const KernelRequest &request, const std::vector<int64_t> &queryRates) {
  printer.constant("kAddsToQueries", request.kind.addsTo(Role::dQ));
  printer.constant("kAddsToKeys", request.kind.addsTo(Role::dK));
  printer.constant("kPreprocessRows", preprocessRows(request));
  printer.constant("kRowWarps", kRowWarps);
  printer.constant("kQueryRateCount", int64_t(queryRates.size()));
  printer.array("kQueryRates", queryRates);
  printArgumentTraits(printer, request);
  const std::vector<int64_t> itemRates = keyItemRates(request);
  printer.constant("kKeyItemRateCount", int64_t(itemRates.size()));
  printer.array("kKeyItemRates", itemRates);
}

} // namespace heddle
