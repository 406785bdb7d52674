#include "codegen/Choose/RatesOf.h"
#include "dialect/Geometry/TileVisitor.h"

#include <algorithm>
#include <map>

namespace heddle {
namespace {

constexpr int64_t kSeqlen = kGuessedRows, kHeads = 16, kTile = 128;
constexpr int64_t kFewOf = 8;     // few tiles: at most one in eight
constexpr int64_t kLongTimes = 8; // long rows: more than eight times as many tiles as inside

// from passes: one kernel visits more than four times as much (1.7 still loses, 11 gains 6.9)
constexpr int64_t kGainTimes = 4;

constexpr int64_t kLargeRows = 256, kPartRows = 64;
constexpr double kOwnShare = 0.8; // own keys: the parts of a large tile need at most this share of its visits
constexpr double kLeastWhole = 6; // whole tiles: so many of a part (H200, d = 128: 3 lose 1%, 7 gain 3%)

/// Evaluations that all guesses may take together: tens of milliseconds. They take some hundred, unless segments of a
/// few tokens lie in others.
constexpr int64_t kMostGuessed = int64_t(1) << 16;

/// A guess about one pattern, and how many evaluations are left for it.
struct Guess {
  attn::ProblemSizes sizes;
  int64_t left = kMostGuessed;

  /// What it says then means nothing.
  bool isCutShort() const { return left < 0; }
};

int64_t tilesOf(const std::vector<attn::TileRun> &runs) {
  int64_t tiles = 0;
  for (const attn::TileRun &run : runs)
    tiles += run.end - run.begin;
  return tiles;
}

struct VisitCounts {
  int64_t visited = 0, whole = 0; ///< of the visited tiles all pairs are kept
};

/// Counts the key tiles of query tiles of one head group. Made once for many: that takes longer than a count.
class VisitCounter {
public:
  /// Both must outlive it.
  VisitCounter(const attn::VariantRanges &ranges, Guess &guess, attn::Direction direction = attn::Direction::Forward)
      : guess(guess) {
    for (unsigned branch = 0; branch < ranges.branches.size(); ++branch)
      branches.emplace_back(ranges, branch, direction, guess.sizes);
  }

  /// Heads of the group with equal values visit alike.
  std::vector<int64_t> headValues(int64_t head) const {
    std::vector<int64_t> values;
    for (const attn::TileVisitor &branch : branches)
      for (int64_t value : branch.headValues(head))
        values.push_back(value);
    return values;
  }

  /// Counts what one query tile visits in all branches together.
  int64_t count(int64_t head, attn::RowTile tile, int64_t columns) const { return counts(head, tile, columns).visited; }

  VisitCounts counts(int64_t head, attn::RowTile tile, int64_t columns) const {
    VisitCounts counts;
    for (const attn::TileVisitor &branch : branches) {
      if (guess.isCutShort())
        return {};
      const attn::TileVisit visit = branch.visit(head, tile, columns, guess.left);
      guess.left -= std::max<int64_t>(visit.evaluations, 1);
      counts.visited += tilesOf(visit.visited);
      counts.whole += tilesOf(visit.full);
    }
    return counts;
  }

private:
  Guess &guess;
  std::vector<attn::TileVisitor> branches;
};

struct AlikeHeads {
  int64_t first = 0, count = 0;
};

/// Key tiles of large query tiles, and those of them that the parts of these need, a part each.
struct LargeTiles {
  int64_t visits = 0, needs = 0;
  int64_t whole = 0, parts = 0; ///< whole key tiles of all parts

  /// Counts as many heads as visit alike.
  void add(const VisitCounter &counter, const AlikeHeads &heads, int64_t index) {
    constexpr int64_t kParts = kLargeRows / kPartRows;
    visits += heads.count * kParts * counter.count(heads.first, {0, index, kLargeRows}, kPartRows);
    for (int64_t part = 0; part < kParts; ++part) {
      const VisitCounts counts = counter.counts(heads.first, {0, index * kParts + part, kPartRows}, kPartRows);
      needs += heads.count * counts.visited;
      whole += heads.count * counts.whole;
    }
    parts += heads.count * kParts;
  }
};

/// The first head of each head group, and how many the group has.
std::map<int64_t, int64_t> headsOfVariants(const attn::PatternAnalysis &analysis, const attn::ProblemSizes &sizes) {
  std::map<unsigned, int64_t> firsts;
  std::map<int64_t, int64_t> heads;
  for (int64_t head = 0; head < sizes.heads; ++head)
    ++heads[firsts.emplace(attn::variantOf(analysis, sizes, head), head).first->second];
  return heads;
}

/// Key tiles of large query tiles, guessed from a few of each class: counts of all of them take seconds where segments
/// are shorter than tiles.
double guessedVisits(const attn::PatternAnalysis &analysis, Guess &guess) {
  constexpr int64_t kClasses = 16, kSamples = 6;
  double visits = 0;
  for (const auto &[head, heads] : headsOfVariants(analysis, guess.sizes)) {
    const attn::VariantRanges &ranges = analysis.variants[attn::variantOf(analysis, guess.sizes, head)].forward;
    const VisitCounter counter(ranges, guess);
    const int64_t tiles = std::max<int64_t>(kSeqlen / ranges.rowRate / kLargeRows, 1);
    int64_t seen = 0, samples = 0;
    for (int64_t rowClass = 0; rowClass < ranges.rowRate; rowClass += (ranges.rowRate + kClasses - 1) / kClasses)
      for (int64_t step = 0; step < kSamples; ++step) {
        const int64_t index = tiles * (step * 79 % 128) / 128 + (step > 0); // seldom where segments begin
        seen += counter.count(head, {rowClass, std::min(index, tiles - 1), kLargeRows}, kPartRows);
        ++samples;
      }
    visits += double(heads) * double(ranges.rowRate) * double(tiles) * double(seen) / double(samples);
  }
  return visits;
}

bool gainsFromPasses(const AnalysedPattern &analysed, Guess &guess) {
  double apart = 0;
  for (const attn::PatternAnalysis *pass : analysed.passes)
    apart += guessedVisits(*pass, guess);
  return !analysed.passes.empty() && guessedVisits(analysed.analysis, guess) > double(kGainTimes) * apart;
}

/// The most that a mask of the pattern is made for; 0: none is made for few.
int64_t fewQueries(attn::PatternOp pattern) {
  int64_t queries = 0;
  pattern.walk([&](attn::MaskOpInterface mask) { queries = std::max(queries, mask.fewQueries()); });
  return queries;
}

/// Looks at a head of each group.
bool firstKeysAreLong(const attn::PatternAnalysis &analysis, Guess &guess) {
  for (const auto &[head, heads] : headsOfVariants(analysis, guess.sizes)) {
    const attn::VariantRanges &ranges = analysis.variants[attn::variantOf(analysis, guess.sizes, head)].transposed;
    const VisitCounter counter(ranges, guess, attn::Direction::Transposed);
    const int64_t last = std::max<int64_t>(kSeqlen / ranges.rowRate / kTile - 1, 0);
    int64_t inside = 0;
    for (int64_t index : {last / 4, last / 2, last - last / 4})
      inside = std::max(inside, counter.count(head, {0, index, kTile}, kTile));
    if (counter.count(head, {0, 0, kTile}, kTile) > kLongTimes * inside)
      return true;
  }
  return false;
}

/// What query tiles of 16 heads of 64k queries visit says the rest.
void guessFromTiles(TileBalance &balance, const AnalysedPattern &analysed, Guess &guess) {
  const attn::PatternAnalysis &analysis = analysed.analysis;
  // Parts go by one kernel: a chain of passes would take memory for every launch of a rank.
  balance.gainsFromPasses = wholesOf(analysed.pattern).empty() && gainsFromPasses(analysed, guess);
  balance.firstKeysAreLong = firstKeysAreLong(analysis, guess);
  int64_t least = INT64_MAX, mostAtStart = 0, mostInside = 0, mostAtEnd = 0;
  LargeTiles large;
  std::map<unsigned, VisitCounter> counters; // of variants
  std::map<std::pair<unsigned, std::vector<int64_t>>, AlikeHeads> groups;
  for (int64_t head = 0; head < kHeads; ++head) { // heads of a variant may begin elsewhere: rule(head)
    const unsigned variant = attn::variantOf(analysis, guess.sizes, head);
    const VisitCounter &counter =
        counters.try_emplace(variant, analysis.variants[variant].forward, guess).first->second;
    AlikeHeads &alike = groups.try_emplace({variant, counter.headValues(head)}, AlikeHeads{head, 0}).first->second;
    ++alike.count;
  }
  for (const auto &[values, heads] : groups) {
    const VisitCounter &counter = counters.at(values.first);
    int64_t last = kSeqlen / analysis.variants[values.first].forward.rowRate / kTile - 1;
    if (last < 4)
      return;
    for (int64_t index : {int64_t(0), last / 4, last / 2, last - last / 4, last}) {
      const int64_t visited = counter.count(heads.first, {0, index, kTile}, kTile);
      int64_t &most = index == 0 ? mostAtStart : index == last ? mostAtEnd : mostInside;
      most = std::max(most, visited);
      if (index != 0 && index != last) {
        large.add(counter, heads, index * kTile / kLargeRows);
        least = std::min(least, visited);
      }
    }
  }
  const int64_t most = std::max({mostAtStart, mostInside, mostAtEnd});
  balance.hasEqualTiles = most <= least + std::max<int64_t>(1, least / 20);
  balance.hasFewTiles = most * kFewOf <= kSeqlen / kTile;
  balance.hasManyTiles = least * kFewOf > kSeqlen / kTile;
  balance.hasOwnKeys = double(large.needs) < kOwnShare * double(large.visits);
  balance.hasWholeTiles = double(large.whole) >= kLeastWhole * double(large.parts);
  balance.hasLongRows = most > kLongTimes * mostInside;
  balance.longRowsAreLast = balance.hasLongRows && mostAtEnd > mostAtStart;
}

} // namespace

TileBalance tileBalance(const AnalysedPattern &analysed) {
  TileBalance unknown;
  unknown.queries = fewQueries(analysed.pattern);
  const bool hasLists = analysed.analysis.hasLists();
  unknown.hasWholeTiles = !hasLists;
  if (!analysed.defaults)
    return unknown;
  Guess guess;
  guess.sizes.heads = kHeads;
  guess.sizes.seqlenQ = guess.sizes.seqlenK = kSeqlen;
  guess.sizes.parameters = *analysed.defaults;
  if (attn::lacksTensors(analysed.analysis, guess.sizes)) {
    // Lists in tensors are made to skip keys, and every block has its own.
    unknown.hasOwnKeys = unknown.hasFewTiles = hasLists;
    return unknown;
  }
  if (attn::hasLongLists(analysed.analysis, guess.sizes))
    return unknown;
  TileBalance balance = unknown;
  guessFromTiles(balance, analysed, guess);
  return guess.isCutShort() ? unknown : balance;
}

} // namespace heddle
