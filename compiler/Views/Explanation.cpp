//===- Explanation.cpp - what a pattern costs --------------------------------===//
#include "compiler/Views/Explanation.h"
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Target/FindArch.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Driver/ProblemKey.h"
#include "compiler/Driver/RatesOf.h"
#include "compiler/Views/KeptRows.h"
#include "compiler/Views/PieceWords.h"
#include "runtime/Core/LaunchPlan.h"

#include <numeric>

namespace heddle::views {

using namespace heddle::attn;

/// What a kernel for these sizes is asked to be.
static KernelRequest kernelRequestOf(const PatternFile &file, const ExplainRequest &request, const PassesOfFile &passes) {
  KernelRequest kernel;
  Result<const GpuArch *> arch = findGpuArch(request.gpu->arch);
  if (arch)
    kernel.arch = *arch;
  kernel.dtype = request.dtype;
  kernel.headDim = request.headDim;
  kernel.valueDim = request.valueDim;
  static_cast<PatternRates &>(kernel) = ratesOf(file, passes);
  return kernel;
}

ConfigChoices configChoicesOf(const PatternFile &file, const ExplainRequest &request) {
  return configChoices(kernelRequestOf(file, request, PassesOfFile(file)));
}

/// The kept pairs of one batch element, each asked of the compiled predicate.
static Result<WideInt> enumeratePairs(const PatternFile &file, const ExplainRequest &request) {
  const ProblemSizes &sizes = request.sizes;
  HEDDLE_ASSIGN(KeptRows rows, KeptRows::create(file, sizes, request.operands));
  std::vector<uint16_t> copies;
  WideInt total = 0;
  for (int64_t head = 0; head < sizes.heads; ++head)
    for (int64_t row = 0; row < sizes.seqlenQ; ++row) {
      rows.read(head, row, copies);
      total += std::accumulate(copies.begin(), copies.end(), int64_t(0));
    }
  return total;
}

static bool hasLists(const PatternAnalysis &analysis) {
  for (const Variant &variant : analysis.variants)
    for (const PieceList &pieces : variant.branches)
      for (const Piece &piece : pieces)
        if (piece.list)
          return true;
  return false;
}

/// A tensor that a mask reads says something else of each batch element.
static bool isOfEachElement(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  return llvm::any_of(file.analysis().maskTensors, [&](unsigned argument) { return attn::hasExtent(pattern, argument, attn::Extent::Batch); });
}

static Status countKeptPairs(const PatternFile &file, const ExplainRequest &request, Explanation &result) {
  const ProblemSizes &sizes = request.sizes;
  if (Status known = checkMaskTensors(file, sizes); !known.isOk()) {
    result.keptPairsNote = "unknown: " + known.message();
    return Status();
  }
  result.keptPairs = countPairs(file.analysis(), sizes);
  if (result.keptPairs) {
    result.keptPairsNote = hasLists(file.analysis()) ? "closed form, lists read entry by entry" : "closed form";
    if (attn::lacksTensors(file.analysis(), {}))
      result.keptPairsNote += isOfEachElement(file) ? " for what its tensors hold of batch element 0" : " for what its tensors hold";
    return Status();
  }
  size_t branches = file.analysis().variants.front().branches.size();
  WideInt pairs = WideInt(sizes.heads) * sizes.seqlenQ * sizes.seqlenK * WideInt(branches);
  if (pairs > kMostEnumeratedPairs) {
    const std::string why = hasLongLists(file.analysis(), sizes)
                                ? "its lists have more than " + std::to_string(kMostListEntries) + " entries"
                                : std::string("the pattern has a part without a closed form");
    result.keptPairsNote = "unknown: " + why + ", and " + toString(pairs) + " pairs are more than the " + std::to_string(kMostEnumeratedPairs) + " that are tried one by one";
    return Status();
  }
  HEDDLE_ASSIGN(result.keptPairs, enumeratePairs(file, request));
  result.keptPairsNote = "counted pair by pair, for batch element 0";
  return Status();
}

static void explainTiles(const PatternFile &file, const ExplainRequest &request, Explanation &result) {
  const ProblemSizes &sizes = request.sizes;
  result.tiles = countTiles(file.analysis(), sizes, request.tile, Direction::Forward);
  TileShape swapped{request.tile.columns, request.tile.rows};
  result.transposedTiles = countTiles(file.analysis(), sizes, swapped, Direction::Transposed);
  if (!result.keptPairs)
    return;
  double kept = static_cast<double>(*result.keptPairs);
  double all = double(sizes.heads) * double(sizes.seqlenQ) * double(sizes.seqlenK);
  double inTiles = double(result.tiles.visited) * double(request.tile.rows) * double(request.tile.columns);
  result.density = all > 0 ? kept / all : 0;
  if (!result.tiles.isBound)
    result.tileEfficiency = inTiles > 0 ? kept / inTiles : 0;
}

/// Of all tensors that the pattern reads; a tensor whose length nobody gave counts for nothing.
static WideInt operandBytes(attn::PatternOp pattern, const ExplainRequest &request) {
  const ProblemSizes &sizes = request.sizes;
  WideInt bytes = 0;
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument) {
    if (!pattern.isOperand(argument))
      continue;
    auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[argument]);
    const attn::OperandUse use = attn::operandUses(pattern, argument).front();
    WideInt size = type.getElementTypeBitWidth() / 8;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension) {
      const int64_t extents[] = {request.batch, sizes.heads, sizes.seqlenQ, sizes.seqlenK, sizes.parameters[argument]};
      size *= type.isDynamicDim(dimension) ? extents[int(use.extents[dimension])] : type.getDimSize(dimension);
    }
    bytes += size;
  }
  return bytes;
}

static void explainTime(attn::PatternOp pattern, const ExplainRequest &request, Explanation &result) {
  const ProblemSizes &sizes = request.sizes;
  WideInt batch = request.batch, rows = batch * sizes.seqlenQ * sizes.heads;
  int64_t bothDims = request.headDim + request.valueDim;
  result.bytes = (rows + batch * sizes.seqlenK * request.kvHeads) * bothDims * dtypeBytes(request.dtype) + 4 * rows +
                 operandBytes(pattern, request);
  if (!result.keptPairs)
    return;
  result.flops = *result.keptPairs * batch * 2 * bothDims;
  Roofline roofline;
  roofline.computeMs = double(*result.flops) / (request.gpu->bf16Tflops * 1e9);
  roofline.memoryMs = double(result.bytes) / (request.gpu->bandwidthGBps * 1e6);
  roofline.isComputeBound = roofline.computeMs >= roofline.memoryMs;
  roofline.ms = std::max(roofline.computeMs, roofline.memoryMs);
  result.roofline = roofline;
}

static LaunchSymbols symbolsOf(const ExplainRequest &request) {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = request.batch;
  symbols[LaunchSymbol::heads] = request.sizes.heads;
  symbols[LaunchSymbol::kvHeads] = request.kvHeads;
  symbols[LaunchSymbol::seqlenQ] = request.sizes.seqlenQ;
  symbols[LaunchSymbol::seqlenK] = request.sizes.seqlenK;
  symbols[LaunchSymbol::headDim] = request.headDim;
  symbols[LaunchSymbol::valueDim] = request.valueDim;
  symbols[LaunchSymbol::smCount] = request.gpu->smCount;
  return symbols;
}

static void explainWorkspace(const ExplainRequest &request, const KernelRequest &kernel, Explanation &result) {
  Result<LaunchPlan> plan = defaultLaunchPlan(kernel);
  if (!plan) {
    result.workspaceNote = plan.status().message();
    return;
  }
  Result<int64_t> bytes = plan->workspaceBytes.evaluate(symbolsOf(request));
  if (bytes)
    result.workspaceBytes = *bytes;
  else
    result.workspaceNote = bytes.status().message();
}

static void explainPasses(const ExplainRequest &request, const KernelRequest &kernel,
                          const std::vector<PatternFile::Pass> &passes, Explanation &result) {
  for (const PatternFile::Pass &pass : passes) {
    PassExplanation &said = result.passes.emplace_back();
    for (const Variant &variant : pass.analysis.variants)
      said.queryRates.push_back(variant.forward.rowRate);
    said.tiles = countTiles(pass.analysis, request.sizes, request.tile, Direction::Forward);
  }
  if (passes.empty())
    return;
  result.chainedMib = kChainedMib[1];
  Result<LaunchPlan> plan = chainedLaunchPlan(kernel);
  Result<int64_t> bytes = plan ? plan->workspaceBytes.evaluate(symbolsOf(request)) : Result<int64_t>(plan.status());
  if (bytes)
    result.chainedWorkspaceBytes = *bytes;
}

static std::string reasonOf(const BranchRanges &branch) {
  if (branch.masked)
    return branch.reason;
  if (branch.mayVisitGaps)
    return "rows lie further apart than the band is wide: tiles between kept ones may be visited";
  return branch.exactFromColumns > 1 ? "visited tiles are exact from " + std::to_string(branch.exactFromColumns) +
                                           " keys per tile on"
                                     : "";
}

static void explainVariants(const PatternFile &file, const ProblemSizes &sizes, Explanation &result) {
  for (const Variant &variant : file.analysis().variants) {
    VariantExplanation &said = result.variants.emplace_back();
    said.queryRate = variant.forward.rowRate;
  }
  for (int64_t head = sizes.heads - 1; head >= 0; --head) {
    VariantExplanation &said = result.variants[variantOf(file.analysis(), sizes, head)];
    said.firstHead = head;
    ++said.heads;
  }
  for (size_t index = 0; index < result.variants.size(); ++index) {
    const Variant &variant = file.analysis().variants[index];
    VariantExplanation &said = result.variants[index];
    for (size_t b = 0; b < variant.branches.size(); ++b) {
      const BranchRanges &ranges = variant.forward.branches[b];
      BranchExplanation branch{ranges.columnRate, ranges.masked, reasonOf(ranges), {}, {}, {}};
      for (const Piece &piece : variant.branches[b]) {
        branch.pieces.push_back(inWords(piece, sizes, said.firstHead));
        branch.whyMasked.push_back(whyMasked(piece, Direction::Forward));
        branch.isListed.push_back(piece.list.has_value());
      }
      said.branches.push_back(std::move(branch));
    }
  }
}

Result<Explanation> explain(const PatternFile &file, const ExplainRequest &request) {
  Explanation result;
  result.gpu = request.gpu->name;
  result.gpuFullName = request.gpu->fullName;
  HEDDLE_TRY(countKeptPairs(file, request, result));
  explainTiles(file, request, result);
  explainTime(file.pattern(), request, result);
  const PassesOfFile passes(file);
  result.whyOnePass = passes.whyNone;
  const KernelRequest kernel = kernelRequestOf(file, request, passes);
  explainWorkspace(request, kernel, result);
  explainPasses(request, kernel, passes.passes, result);
  explainVariants(file, request.sizes, result);
  return result;
}

} // namespace heddle::views
