//===- PatternAnalysis.cpp - variants and their ranges --------------------===//
#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Analysis/BoundTerms.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// Operand counts of the attn.heads ops of a pattern, ascending and distinct.
std::vector<unsigned> headCounts(PatternOp pattern) {
  std::vector<unsigned> counts;
  pattern.walk([&](HeadsOp heads) { counts.push_back(heads.getMasks().size()); });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Frame rootFrame(CellTable &cells, const std::map<unsigned, unsigned> &groupOfCount) {
  Frame frame;
  IntExpr qOrigin = symbol(Symbol::QOrigin), kOrigin = symbol(Symbol::KOrigin);
  frame.extentQ = qOrigin + symbol(Symbol::SeqlenQ);
  frame.extentK = kOrigin + symbol(Symbol::SeqlenK);
  frame.groupOfCount = &groupOfCount;
  frame.cells = &cells;
  return frame;
}

Variant analyzeVariant(PatternOp pattern, std::map<unsigned, unsigned> groupOfCount) {
  Variant variant;
  variant.groupOfCount = std::move(groupOfCount);
  CellTable cells;
  Frame frame = rootFrame(cells, variant.groupOfCount);
  SoftmaxOp softmax = pattern.getSoftmax();
  if (softmax.getCombine() == Combine::set_union)
    variant.branches.emplace_back();
  for (mlir::Value branch : softmax.getBranches()) {
    if (softmax.getCombine() == Combine::lse)
      variant.branches.emplace_back();
    branch.getDefiningOp<MaskOpInterface>().pieces(frame, variant.branches.back());
  }
  for (PieceList &pieces : variant.branches)
    dropEmpty(pieces);
  variant.forward = buildRanges(variant.branches, Direction::Forward);
  variant.transposed = buildRanges(variant.branches, Direction::Transposed);
  return variant;
}

/// True if upper - lower is a negative constant for some pair of their terms.
bool provablyEmpty(const Interval &interval) {
  const std::vector<IntExpr> lowers = lowerTerms(interval), uppers = upperTerms(interval);
  auto split = [](const IntExpr &bound) -> std::pair<IntExpr, int64_t> {
    const IntExpr &term = bound.get()->op == IntExpr::Cut ? bound.get()->operands[0] : bound;
    if (auto value = term.constant())
      return {IntExpr(), *value};
    const IntExpr::Node *node = term.get();
    if (node->op == IntExpr::Add && node->operands[1].constant())
      return {node->operands[0], *node->operands[1].constant()};
    return {term, 0};
  };
  for (const IntExpr &lower : lowers)
    for (const IntExpr &upper : uppers) {
      auto [lowerRest, lowerConstant] = split(lower);
      auto [upperRest, upperConstant] = split(upper);
      if (lowerRest == upperRest && upperConstant < lowerConstant)
        return true;
    }
  return false;
}

bool contradict(const std::vector<Congruence> &lattice) {
  std::map<int64_t, int64_t> residueOf; // by modulus
  for (const Congruence &congruence : lattice)
    if (auto residue = congruence.residue.constant())
      if (auto [known, isNew] = residueOf.emplace(congruence.modulus, *residue); !isNew && (known->second - *residue) % congruence.modulus != 0)
        return true;
  return false;
}

/// Query and key in one cell, or in cells at a distance, that they cannot be in.
bool contradictBands(const Piece &piece) {
  return std::any_of(piece.bands.begin(), piece.bands.end(), [&](const CellBand &band) {
    Interval steps = band.steps;
    for (const CellLoop &loop : piece.cells)
      if (loop.cell == band.loop.cell)
        steps.intersect({0, 0});
    return provablyEmpty(steps);
  });
}

/// " in line 3", or nothing where the source is not known.
std::string lineOf(mlir::Operation *op) {
  auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  return place ? " in line " + std::to_string(place.getLine()) : std::string();
}

} // namespace

bool PatternAnalysis::isStructural() const {
  return std::all_of(variants.begin(), variants.end(), [](const Variant &variant) {
    return std::none_of(variant.forward.branches.begin(), variant.forward.branches.end(),
                        [](const BranchRanges &branch) { return branch.masked; });
  });
}

namespace {

using GroupOfCount = std::map<unsigned, unsigned>;

/// The operand that each variant takes of the attn.heads ops.
std::vector<GroupOfCount> variantsOf(const std::vector<unsigned> &counts) {
  unsigned variants = 1;
  for (unsigned count : counts)
    variants *= count;
  std::vector<GroupOfCount> result(variants);
  for (unsigned index = 0; index < variants; ++index) {
    unsigned rest = index;
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      result[index][*count] = rest % *count;
      rest /= *count;
    }
  }
  return result;
}

} // namespace

std::vector<PieceList> piecesOf(PatternOp pattern, mlir::Value mask, CellTable &cells) {
  std::vector<PieceList> result;
  for (const GroupOfCount &groupOfCount : variantsOf(headCounts(pattern))) {
    Frame frame = rootFrame(cells, groupOfCount);
    mask.getDefiningOp<MaskOpInterface>().pieces(frame, result.emplace_back());
    dropEmpty(result.back());
  }
  return result;
}

IntExpr headGroup(unsigned count) {
  IntExpr head = symbol(Symbol::Head), heads = symbol(Symbol::Heads);
  IntExpr share = floorDiv(heads, count), larger = mod(heads, count);
  IntExpr headsInLarger = larger * (share + 1);
  return select(less(head, headsInLarger), floorDiv(head, share + 1),
                larger + floorDiv(head - headsInLarger, max(share, 1)));
}

PatternAnalysis analyze(PatternOp pattern) {
  PatternAnalysis analysis;
  std::vector<unsigned> counts = headCounts(pattern);
  analysis.variantOfHead = 0;
  for (unsigned count : counts)
    analysis.variantOfHead = analysis.variantOfHead * IntExpr(count) + headGroup(count);
  analysis.maskTensors = maskTensorsOf(pattern);
  for (GroupOfCount &groupOfCount : variantsOf(counts))
    analysis.variants.push_back(analyzeVariant(pattern, std::move(groupOfCount)));
  return analysis;
}

Piece maskedPiece(const Frame &frame, mlir::Operation *op, const llvm::Twine &why) {
  Piece piece = frame.region;
  piece.masked = true;
  piece.reason = (op->getName().getStringRef() + lineOf(op) + ": " + why).str();
  return piece;
}

void dropEmpty(PieceList &pieces) {
  pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                              [](const Piece &piece) {
                                return provablyEmpty(piece.q) || provablyEmpty(piece.k) ||
                                       provablyEmpty(piece.diagonal) || contradict(piece.qLattice) ||
                                       contradict(piece.kLattice) || contradict(piece.tie) || contradictBands(piece);
                              }),
               pieces.end());
}

PieceList intersectAll(const PieceList &a, const PieceList &b, const Frame &frame, mlir::Operation *op) {
  constexpr size_t kMaxProducts = 64;
  PieceList result;
  if (a.size() * b.size() > kMaxProducts)
    return {maskedPiece(frame, op, llvm::Twine(a.size() * b.size()) + " intersections of pieces, at most " +
                                       llvm::Twine(kMaxProducts) + " are made")};
  for (const Piece &left : a)
    for (const Piece &right : b)
      result.push_back(intersect(left, right));
  dropEmpty(result);
  return result;
}

} // namespace heddle::attn
