#include "compiler/Views/Explanation.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Views/PieceWords.h"
#include "dialect/Geometry/Variant.h"
#include "dialect/IR/PatternOperands.h"

namespace heddle::views {

using namespace heddle::attn;

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

/// Kernels that each walk one lattice are told of together.
static void explainCliff(const PatternFile &file, const ExplainRequest &request, Explanation &result) {
  if (!result.tileEfficiency)
    return;
  result.cliff = cliffOf(file.analysis(), request.sizes, request.tile, *result.keptPairs, result.tiles);
  if (!result.cliff || result.passes.empty() || !result.cliff->factor)
    return;
  TileCounts chained;
  for (const PassExplanation &pass : result.passes)
    chained.add(pass.tiles);
  if (!chained.isBound && chained.visited < result.tiles.visited)
    result.cliff->advice +=
        "; chained: " + timesText(*result.cliff->factor * double(chained.visited) / double(result.tiles.visited));
}

/// The bytes of all tensors that the pattern reads; a tensor whose length nobody gave counts for nothing.
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

/// The bytes of what every call of the kind reads and writes, once.
static WideInt roleBytes(const ExplainRequest &request) {
  const ProblemSizes &of = request.sizes;
  const AttentionSizes sizes{request.batch,   of.seqlenQ,      of.seqlenK,      of.heads,
                             request.kvHeads, request.headDim, request.valueDim};
  WideInt bytes = 0;
  for (Access access : {Access::read, Access::write})
    for (const RoleSpec &role : rolesOf(request.kind, access)) {
      WideInt size = dtypeBytes(CallElements(request.dtype).of(role.element));
      for (int64_t extent : sizes.shapeOf(role))
        size *= extent;
      bytes += size;
    }
  return bytes;
}

static void explainTime(attn::PatternOp pattern, const ExplainRequest &request, Explanation &result) {
  result.bytes = roleBytes(request) + operandBytes(pattern, request);
  if (!result.keptPairs)
    return;
  result.flops = *result.keptPairs * request.batch * request.kind.flopsOfPair(request.headDim, request.valueDim);
  Roofline roofline;
  roofline.matrixTflops = request.gpu->matrixTflops(request.dtype, request.precision);
  roofline.computeMs = double(*result.flops) / (roofline.matrixTflops * 1e9);
  roofline.memoryMs = double(result.bytes) / (request.gpu->bandwidthGBps * 1e6);
  roofline.isComputeBound = roofline.computeMs >= roofline.memoryMs;
  roofline.ms = std::max(roofline.computeMs, roofline.memoryMs);
  result.roofline = roofline;
}

static std::string reasonOf(const BranchRanges &branch, Direction direction) {
  if (branch.masked)
    return branch.reason;
  if (branch.mayVisitGaps)
    return std::string(direction == Direction::Forward ? "rows" : "keys") +
           " lie further apart than the band is wide: tiles between kept ones may be visited";
  return branch.exactFromColumns > 1 ? "visited tiles are exact from " + std::to_string(branch.exactFromColumns) +
                                           (direction == Direction::Forward ? " keys" : " queries") + " per tile on"
                                     : "";
}

static DirectionExplanation explainDirection(const Variant &variant, size_t branch, Direction direction) {
  const BranchRanges &ranges = variant.ranges(direction).branches[branch];
  DirectionExplanation said{ranges.columnRate, ranges.masked, reasonOf(ranges, direction), {}};
  for (const Piece &piece : variant.branches[branch])
    said.whyMasked.push_back(whyMasked(piece, direction));
  return said;
}

static void explainVariants(const PatternFile &file, const ProblemSizes &sizes, Explanation &result) {
  for (const Variant &variant : file.analysis().variants) {
    VariantExplanation &said = result.variants.emplace_back();
    said.queryRate = variant.forward.rowRate;
  }
  for (const HeadGroup &alike : headGroups(file.analysis(), sizes)) {
    VariantExplanation &said = result.variants[alike.variant];
    said.firstHead = said.heads ? std::min(said.firstHead, alike.first) : alike.first;
    said.heads += alike.heads;
  }
  for (size_t index = 0; index < result.variants.size(); ++index) {
    const Variant &variant = file.analysis().variants[index];
    VariantExplanation &said = result.variants[index];
    for (size_t b = 0; b < variant.branches.size(); ++b) {
      BranchExplanation branch{explainDirection(variant, b, Direction::Forward),
                               explainDirection(variant, b, Direction::Transposed),
                               {},
                               {}};
      for (const Piece &piece : variant.branches[b]) {
        branch.pieces.push_back(inWords(piece, sizes, said.firstHead));
        branch.isListed.push_back(piece.list.has_value());
      }
      said.branches.push_back(std::move(branch));
    }
  }
}

Result<Explanation> explain(const PatternFile &file, const ExplainRequest &request) {
  constexpr double kOfPairs = 0.5; // of the progress; counts of tiles are the rest
  Explanation result;
  auto tell = [&](double share) {
    if (request.pairs.progress)
      request.pairs.progress(share);
  };
  result.gpu = request.gpu->name;
  result.gpuFullName = request.gpu->fullName;
  HEDDLE_ASSIGN(KeptPairs kept, keptPairsOf(file, request.sizes, request.operands,
                                            {request.pairs.mostPairs, [&](double share) { tell(share * kOfPairs); }}));
  result.keptPairs = kept.count;
  result.keptPairsNote = kept.note;
  tell(kOfPairs);
  explainTiles(file, request, result);
  explainTime(file.pattern(), request, result);
  tell(kOfPairs + 0.2);
  explainKernel(file, request, result);
  tell(kOfPairs + 0.3);
  explainCliff(file, request, result);
  explainVariants(file, request.sizes, result);
  return result;
}

} // namespace heddle::views
