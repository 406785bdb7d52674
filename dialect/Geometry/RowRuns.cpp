#include "dialect/Geometry/RowRuns.h"
#include "dialect/Geometry/CellWalk.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/Lattice.h"
#include "dialect/Geometry/RowTiles.h"

#include <numeric>

namespace heddle::attn {

/// As many take about the time of an evaluation of a piece.
constexpr int64_t kStretchesOfEvaluation = 8;

using Run = BranchEvaluator::Run<SweepNumber>;
using Runs = std::vector<Run>;

/// One piece of a branch, on lattices of its own.
struct RowRuns::Part {
  BranchEvaluator evaluator;
  int64_t rowRate, columnRate;
  size_t branch;
};

/// One of the patterns.
struct RowRuns::Side {
  explicit Side(const AnalysedCall &call) : call(call), variants(call.analysis.variants.size()) {}

  const std::vector<Part> &partsFor(int64_t head) const { return variants[variantOf(call.analysis, call.sizes, head)]; }
  /// False: it has no closed form.
  bool addParts() {
    for (size_t v = 0; v < variants.size(); ++v) {
      const std::vector<PieceList> &branches = call.analysis.variants[v].branches;
      for (size_t b = 0; b < branches.size(); ++b)
        for (const Piece &piece : branches[b]) {
          const VariantRanges ranges = buildRanges({{piece}}, Direction::Forward, kCountedClasses);
          if (piece.masked || ranges.branches[0].masked)
            return false;
          variants[v].push_back({BranchEvaluator(ranges.branches[0], call.sizes.tensors), ranges.rowRate,
                                 ranges.branches[0].columnRate, b});
        }
    }
    return true;
  }

  AnalysedCall call;
  std::vector<std::vector<Part>> variants;
};

/// The rows of one class, and what keeps keys there.
struct RowRuns::Sweep {
  int64_t head, first, step, period; ///< rows by their number in the call
  std::array<const std::vector<Part> *, 2> parts;
};

namespace {

/// What a piece keeps of rows that evaluate alike.
struct Kept {
  size_t side, branch;
  int64_t rate, residue;
  Runs runs;
};

/// Keys residue + rate * n of a class of a multiple of the rate, numbered within it.
Runs inClass(SweepDomain &domain, const Kept &kept, int64_t rate, int64_t residue) {
  const int64_t times = rate / kept.rate, offset = (residue - kept.residue) / kept.rate;
  auto atOrAfter = [&](SweepNumber number) {
    number = domain.sub(number, domain.constant(offset - (times - 1)));
    return times == 1 ? number : domain.floorDiv(number, domain.constant(times));
  };
  Runs runs;
  for (const Run &run : kept.runs)
    if (const Run cut{atOrAfter(run.begin), atOrAfter(run.end)}; domain.less(cut.begin, cut.end))
      runs.push_back(cut);
  return runs;
}

/// Ascending and disjoint.
Runs joined(SweepDomain &domain, Runs runs) {
  std::sort(runs.begin(), runs.end(), [&](const Run &a, const Run &b) { return domain.less(a.begin, b.begin); });
  Runs result;
  for (const Run &run : runs)
    if (result.empty() || domain.less(result.back().end, run.begin))
      result.push_back(run);
    else if (domain.less(result.back().end, run.end))
      result.back().end = run.end;
  return result;
}

/// Whether runs hold numbers that ascend from one question to the next.
class Cursor {
public:
  Cursor(size_t side, Runs runs) : side(side), runs(std::move(runs)) {}

  bool holds(SweepDomain &domain, const SweepNumber &number) {
    while (at < runs.size() && !domain.less(number, runs[at].end))
      ++at;
    return at < runs.size() && !domain.less(number, runs[at].begin);
  }
  void appendEnds(std::vector<SweepNumber> &ends) const {
    for (const Run &run : runs)
      ends.insert(ends.end(), {run.begin, run.end});
  }

  size_t side;

private:
  Runs runs;
  size_t at = 0;
};

/// One for each branch that keeps keys of the class.
std::vector<Cursor> branchesIn(SweepDomain &domain, const std::vector<Kept> &kept, int64_t rate, int64_t residue) {
  std::map<std::pair<size_t, size_t>, Runs> branches;
  for (const Kept &one : kept)
    if ((residue - one.residue) % one.rate == 0) {
      const Runs runs = inClass(domain, one, rate, residue);
      Runs &all = branches[{one.side, one.branch}];
      all.insert(all.end(), runs.begin(), runs.end());
    }
  std::vector<Cursor> cursors;
  for (auto &[place, runs] : branches)
    cursors.emplace_back(place.first, joined(domain, std::move(runs)));
  return cursors;
}

/// Between neighbouring ends of runs every branch keeps all keys or none.
void appendStretches(SweepDomain &domain, std::vector<Cursor> branches, int64_t rate, int64_t residue,
                     std::vector<KeyStretch> &stretches) {
  std::vector<SweepNumber> ends;
  for (const Cursor &branch : branches)
    branch.appendEnds(ends);
  std::sort(ends.begin(), ends.end(), [&](const SweepNumber &a, const SweepNumber &b) { return domain.less(a, b); });
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (!domain.less(ends[i], ends[i + 1]))
      continue;
    KeyStretch stretch{rate, residue, ends[i], ends[i + 1], {0, 0}};
    for (Cursor &branch : branches)
      stretch.copies[branch.side] += branch.holds(domain, ends[i]);
    if (stretch.copies[0] + stretch.copies[1] > 0)
      stretches.push_back(stretch);
  }
}

/// The common multiple of the rates of keys; above `most`, anything above it.
int64_t keyRateOf(const std::vector<Kept> &kept, int64_t most) {
  int64_t rate = 1;
  for (const Kept &one : kept)
    if (rate <= most)
      rate = std::lcm(rate, one.rate);
  return rate;
}

std::vector<KeyStretch> stretchesOf(SweepDomain &domain, const std::vector<Kept> &kept, int64_t rate) {
  std::vector<KeyStretch> stretches;
  for (int64_t residue = 0; residue < rate; ++residue)
    appendStretches(domain, branchesIn(domain, kept, rate, residue), rate, residue, stretches);
  return stretches;
}

} // namespace

WideInt AlikeRows::pairsOf(const KeyStretch &stretch) const {
  SweepDomain domain;
  return seriesSum(domain.sub(stretch.end, stretch.begin), steps, turns);
}

RowRuns::RowRuns() = default;
RowRuns::RowRuns(RowRuns &&) noexcept = default;
RowRuns::~RowRuns() = default;

std::optional<RowRuns> RowRuns::create(const AnalysedCall &first, const AnalysedCall &second) {
  RowRuns runs;
  runs.most = first.sizes.mostEvaluations;
  for (size_t side = 0; side < 2; ++side) {
    const AnalysedCall &call = side ? second : first;
    runs.sides[side] = std::make_unique<Side>(call);
    if (lacksTensors(call.analysis, call.sizes) || !runs.sides[side]->addParts())
      return std::nullopt;
  }
  return runs;
}

std::vector<int64_t> RowRuns::headValues(int64_t head) const {
  std::vector<int64_t> values;
  for (const auto &side : sides) {
    values.push_back(variantOf(side->call.analysis, side->call.sizes, head));
    for (const Part &part : side->partsFor(head)) {
      auto valueOf = [&](Symbol symbol) { return symbolValue(side->call.sizes, head, symbol); };
      const std::vector<int64_t> own = part.evaluator.headValues(valueOf);
      values.insert(values.end(), own.begin(), own.end());
    }
  }
  return values;
}

bool RowRuns::visit(int64_t head, IndexRange rows, const std::function<void(const AlikeRows &)> &use) {
  Sweep sweep{head, 0, 1, 1, {}};
  int64_t columnRate = 1;
  std::vector<int64_t> divisors;
  for (size_t side = 0; side < 2; ++side) {
    sweep.parts[side] = &sides[side]->partsFor(head);
    for (const Part &part : *sweep.parts[side]) {
      auto valueOf = [&](Symbol symbol) {
        return symbol.kind == Symbol::TileFirst || symbol.kind == Symbol::TileLast
                   ? sides[side]->call.sizes.qOrigin + rows.begin
                   : symbolValue(sides[side]->call.sizes, head, symbol);
      };
      const std::vector<int64_t> own = part.evaluator.divisors(valueOf, 1);
      divisors.insert(divisors.end(), own.begin(), own.end());
      sweep.step = std::min(std::lcm(sweep.step, part.rowRate), rows.size()); // of one row each, at most
      columnRate = std::min(std::lcm(columnRate, part.columnRate), kMaxRate);
    }
  }
  divisors.push_back(columnRate);
  for (int64_t rowClass = 0; rowClass < std::min(sweep.step, rows.size()) && spent <= most; ++rowClass) {
    const int64_t count = rowsInClass(rows.size(), sweep.step, rowClass);
    sweep.first = rows.begin + rowClass;
    sweep.period = choosePeriod(divisors, sweep.step, sweep.step * count);
    coverByRectangles(count, sweep.period, [&](const Rectangle &all) { return visitCorner(sweep, all, use); });
  }
  return spent <= most;
}

Rectangle RowRuns::visitCorner(Sweep &sweep, const Rectangle &all, const std::function<void(const AlikeRows &)> &use) {
  SweepDomain domain{all.steps - 1, all.turns - 1};
  const int64_t row = sweep.first + sweep.step * (all.step + sweep.period * all.turn);
  std::vector<Kept> kept;
  for (size_t side = 0; side < 2; ++side) {
    const ProblemSizes &sizes = sides[side]->call.sizes;
    const SweepNumber position{sizes.qOrigin + row, sweep.step, sweep.step * sweep.period};
    auto valueAt = [&](const SweepNumber &place) {
      return [&sizes, head = sweep.head, place](Symbol symbol) {
        return symbol.kind == Symbol::TileFirst || symbol.kind == Symbol::TileLast
                   ? place
                   : SweepNumber{symbolValue(sizes, head, symbol), 0, 0};
      };
    };
    domain.tensors = &sizes.tensors;
    for (const Part &part : *sweep.parts[side]) {
      auto visit = part.evaluator.visit(domain, valueAt(position), 1, most - spent);
      spent += std::max<int64_t>(visit.evaluations, 1);
      if (spent > most)
        return {};
      const int64_t residue = part.evaluator.residue([&](Symbol symbol) { return valueAt(position)(symbol).value; });
      if (!visit.visited.empty())
        kept.push_back({side, part.branch, part.columnRate, residue, std::move(visit.visited)});
    }
  }
  const int64_t keyRate = keyRateOf(kept, most - spent);
  spent += keyRate - 1;
  if (spent > most)
    return {};
  std::vector<KeyStretch> stretches = stretchesOf(domain, kept, keyRate);
  spent += int64_t(stretches.size()) / kStretchesOfEvaluation;
  const AlikeRows rows{row, sweep.step, sweep.period, domain.horizon + 1, domain.turns + 1, std::move(stretches)};
  use(rows);
  return {all.step, all.turn, rows.steps, rows.turns};
}

} // namespace heddle::attn
