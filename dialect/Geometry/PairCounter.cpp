#include "dialect/Geometry/PairCounter.h"
#include "dialect/Geometry/BranchCount.h"

namespace heddle::attn {

namespace {

/// Pairs that several pieces share, counted with a sign.
struct PairTerm {
  unsigned variant;
  int sign;
  Direction direction; ///< in which one by one tiles are the pairs
  BranchCount tiles;
};

/// Without lists, if there is such a direction. None: there is none.
std::optional<PairTerm> termOf(const Piece &piece, unsigned variant, int sign, const TensorData &tensors) {
  std::optional<PairTerm> listed;
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    const VariantRanges ranges = buildRanges({{piece}}, direction, kCountedClasses);
    const BranchRanges &branch = ranges.branches[0];
    if (piece.masked || branch.masked || (hasLists(branch) && listed))
      continue;
    PairTerm term{variant, sign, direction, BranchCount(branch, {direction, ranges.rowRate}, tensors)};
    if (!hasLists(branch))
      return term;
    listed.emplace(std::move(term));
  }
  return listed;
}

/// Inclusion-exclusion over the pieces of one branch, each within `within`: calls use(term) for every term, until that
/// returns false. False: it did, or a term has no closed form.
template <class Use>
bool forEachTerm(const PieceList &pieces, const Piece &within, unsigned variant, const TensorData &tensors, Use use) {
  if (pieces.size() > kMaxPieces)
    return false;
  for (unsigned subset = 1; subset < (1u << pieces.size()); ++subset) {
    PieceList common = {within};
    for (size_t i = 0; i < pieces.size(); ++i)
      if (subset >> i & 1)
        common = {intersect(common[0], pieces[i])};
    dropEmpty(common);
    if (common.empty())
      continue;
    std::optional<PairTerm> term = termOf(common[0], variant, __builtin_popcount(subset) % 2 ? 1 : -1, tensors);
    if (!term || !use(std::move(*term)))
      return false;
  }
  return true;
}

/// Calls `use` for all branches.
template <class Use>
bool forEachTerm(const PatternAnalysis &analysis, const Piece &within, const TensorData &tensors, Use use) {
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (const PieceList &pieces : analysis.variants[index].branches)
      if (!forEachTerm(pieces, within, index, tensors, use))
        return false;
  return true;
}

/// Summed over heads, of these rows of the axis of the term. What it takes is no longer left in `sizes`.
TileCounts sumTerm(PairTerm &term, const std::vector<HeadGroup> &heads, ProblemSizes &sizes, RowAxis rows) {
  term.tiles.restart();
  TileCounts pairs;
  forEachDistinctHead(heads, sizes, term.variant, term.tiles.evaluator(), [&](int64_t head, int64_t weight) {
    if (!pairs.isBound)
      pairs.add(term.tiles.count(after(pairs, sizes), head, {1, 1}, rows), weight);
  });
  sizes.mostEvaluations -= pairs.evaluations;
  return pairs;
}

/// The rectangle between the ends that stand behind so many parameters.
Piece rectangle(unsigned parameters) {
  auto end = [&](unsigned which) { return symbol(Symbol::Parameter, parameters + which); };
  Piece piece;
  piece.q = {end(0), end(1)};
  piece.k = {end(2), end(3)};
  return piece;
}

} // namespace

struct PairCounter::Terms {
  std::vector<PairTerm> list;
};

PairCounter::PairCounter(const PatternAnalysis &analysis, const ProblemSizes &sizes)
    : call(sizes), sizes(sizes), heads(headGroups(analysis, sizes)) {
  if (lacksTensors(analysis, sizes))
    return;
  Terms made;
  auto keep = [&](PairTerm &&term) {
    made.list.push_back(std::move(term));
    return true;
  };
  if (forEachTerm(analysis, rectangle(sizes.parameters.size()), sizes.tensors, keep))
    terms = std::make_unique<Terms>(std::move(made));
}
PairCounter::PairCounter(PairCounter &&) noexcept = default;
PairCounter::~PairCounter() = default;

std::optional<WideInt> PairCounter::count(IndexRange queries, IndexRange keys) {
  if (!terms)
    return std::nullopt;
  sizes.parameters.resize(call.parameters.size());
  for (const auto &[range, origin] : {std::pair(queries, call.qOrigin), std::pair(keys, call.kOrigin)}) {
    sizes.parameters.push_back(origin + range.begin);
    sizes.parameters.push_back(origin + range.end - 1);
  }
  WideInt total = 0;
  for (PairTerm &term : terms->list) {
    const IndexRange of = term.direction == Direction::Forward ? queries : keys;
    const RowAxis rows{rowAxis(call, term.direction).origin + of.begin, of.size()};
    const TileCounts pairs = sumTerm(term, heads, sizes, rows);
    if (pairs.isBound)
      return std::nullopt;
    total += term.sign * pairs.visited;
  }
  return total;
}

std::optional<WideInt> countPairs(const PatternAnalysis &analysis, const ProblemSizes &sizes, bool *isCutShort) {
  if (lacksTensors(analysis, sizes))
    return std::nullopt;
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  ProblemSizes left = sizes;
  WideInt total = 0;
  auto add = [&](PairTerm &&term) {
    const TileCounts pairs = sumTerm(term, heads, left, rowAxis(sizes, term.direction));
    if (isCutShort)
      *isCutShort |= pairs.isCutShort;
    total += term.sign * pairs.visited;
    return !pairs.isBound;
  };
  return forEachTerm(analysis, {}, sizes.tensors, add) ? std::optional(total) : std::nullopt;
}

} // namespace heddle::attn
