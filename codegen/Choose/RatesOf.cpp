#include "codegen/Choose/RatesOf.h"
#include "codegen/Choose/LaunchExprOf.h"
#include "dialect/Analysis/DocumentRows.h"
#include "dialect/Geometry/ConsecutiveTiles.h"
#include "dialect/Geometry/Grain.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/ScoreChain.h"

namespace heddle {

QOriginRule originRuleOf(attn::PatternOp pattern) {
  switch (pattern.getQOrigin()) {
  case attn::Origin::start:
    return QOriginRule::start;
  case attn::Origin::end:
    return QOriginRule::end;
  case attn::Origin::given:
    break;
  }
  return QOriginRule::given;
}

static std::vector<VariantRates> variantsOf(const attn::PatternAnalysis &analysis,
                                            attn::Direction direction = attn::Direction::Forward) {
  std::vector<VariantRates> variants;
  for (const attn::Variant &variant : analysis.variants) {
    VariantRates &rates = variants.emplace_back();
    const attn::VariantRanges &ranges = variant.ranges(direction);
    rates.queryRate = ranges.rowRate;
    rates.keyRates.clear();
    for (const attn::BranchRanges &branch : ranges.branches)
      rates.keyRates.push_back(branch.columnRate);
  }
  return variants;
}

static LaunchExpr extentOf(attn::PatternOp pattern, attn::Extent extent, unsigned argument) {
  switch (extent) {
  case attn::Extent::Batch:
    return LaunchSymbol::batch;
  case attn::Extent::Heads:
    return LaunchSymbol::heads;
  case attn::Extent::SeqlenQ:
    return LaunchSymbol::seqlenQ;
  case attn::Extent::SeqlenK:
    return LaunchSymbol::seqlenK;
  case attn::Extent::Columns:
    return LaunchExpr::param(attn::columnsArgument(pattern));
  case attn::Extent::Length:
  case attn::Extent::Rows:
    break;
  }
  return LaunchExpr::param(argument);
}

/// Sizes of a tensor, as the ops that read it say what each `?` stands for.
static void addExtents(GradientSlot &slot, attn::PatternOp pattern, unsigned argument) {
  const auto type = llvm::cast<mlir::MemRefType>(pattern.getArgument(argument).getType());
  const attn::OperandUse use = attn::operandUses(pattern, argument).front();
  for (auto [dimension, extent] : llvm::enumerate(type.getShape()))
    slot.elements = slot.elements * (type.isDynamicDim(dimension) ? extentOf(pattern, use.extents[dimension], argument)
                                                                  : LaunchExpr(extent));
}

static bool hasAll(attn::PatternOp pattern, unsigned argument, llvm::ArrayRef<attn::Extent> extents) {
  return llvm::all_of(extents, [&](attn::Extent extent) { return attn::hasExtent(pattern, argument, extent); });
}

static std::vector<GradientSlot> gradientsOf(attn::PatternOp pattern) {
  using attn::Extent;
  attn::SoftmaxOp softmax = pattern.getSoftmax();
  const auto ofScores = attn::argumentsOfScores(softmax.getScores());
  std::vector<GradientSlot> slots;
  for (mlir::BlockArgument argument : pattern.getBody().getArguments()) {
    const unsigned number = argument.getArgNumber();
    GradientSlot slot;
    slot.argument = number;
    slot.isOfScores = llvm::is_contained(ofScores, argument);
    slot.isOfSink = softmax.getDynamicSink() == argument;
    if (!slot.isOfScores && !slot.isOfSink)
      continue;
    if (pattern.isOperand(number)) {
      addExtents(slot, pattern, number);
      slot.hasHeads = hasAll(pattern, number, {Extent::Heads});
      slot.isShared = !hasAll(pattern, number, {Extent::SeqlenQ, Extent::SeqlenK});
      slot.hasPairs = softmax.getBranches().size() == 1 &&
                      hasAll(pattern, number, {Extent::Batch, Extent::Heads, Extent::SeqlenQ, Extent::SeqlenK});
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

std::string whyNoPages(attn::PatternOp pattern) {
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument)
    for (const auto &[has, of] : {std::pair(&attn::hasQueries, "query"), {&attn::hasKeys, "key"}})
      if (pattern.isOperand(argument) && has(pattern, argument))
        return "argument " + std::to_string(argument) + " of the pattern has elements for each " + of +
               ", and sequences in pages have numbers of their own";
  return {};
}

std::vector<int64_t> wholesOf(attn::PatternOp pattern) {
  std::vector<int64_t> wholes;
  for (attn::WholeAxis axis : attn::kWholeAxes)
    if (const std::optional<unsigned> argument = pattern.getWholeArgument(axis))
      wholes.push_back(*argument);
  return attn::areParts(pattern) ? wholes : std::vector<int64_t>();
}

PatternRates ratesOf(const AnalysedPattern &analysed) {
  attn::PatternOp pattern = analysed.pattern;
  const attn::PatternAnalysis &analysis = analysed.analysis;
  PatternRates rates;
  rates.variants = variantsOf(analysis);
  rates.transposed = variantsOf(analysis, attn::Direction::Transposed);
  rates.isDetached = pattern.getSoftmax().isDetached();
  rates.paramCount = pattern.getNumArguments();
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i))
      rates.operands.push_back({i, attn::lengthDimension(pattern, i).has_value()});
  rates.gradients = gradientsOf(pattern);
  rates.bounds = argumentBounds(pattern);
  rates.qOrigin = originRuleOf(pattern);
  rates.wholes = wholesOf(pattern);
  rates.grain = attn::grainOf(analysis);
  rates.bandedGrain = attn::bandedGrainOf(analysis).grain;
  rates.transposedGrain = attn::grainOf(analysis, attn::Direction::Transposed);
  rates.transposedBandedGrain = attn::bandedGrainOf(analysis, attn::Direction::Transposed).grain;
  rates.consecutiveRate = attn::rateOfConsecutiveTiles(analysis);
  rates.hasLists = analysis.hasLists();
  rates.searchesLists = analysis.searchesLists();
  rates.hasScores = attn::changesScores(pattern.getSoftmax().getScores());
  rates.balance = tileBalance(analysed);
  for (const attn::PatternAnalysis *pass : analysed.passes)
    rates.passes.push_back({variantsOf(*pass), attn::grainOf(*pass), attn::bandedGrainOf(*pass).grain});
  rates.whyOnePass = analysed.whyOnePass;
  rates.whyNoPages = whyNoPages(pattern);
  if (const auto documents = attn::documentRowsOf(analysed.lowered, rates.whyNoDocuments))
    rates.documents = launchExprOf(documents->count, rates.qOrigin), rates.hasDocuments = true;
  return rates;
}

} // namespace heddle
