//===- Halving.cpp - the model's favourites, halved round by round --------------===//
// A pool of the points that the cost model holds for fastest. Each round tries a few of them and keeps the better half
// by what the trials say of the model (KnobEffects); the neighbours of the fastest point seen are always in the pool.
// Points that were dropped wait for the next pool. Within a round, what is still uncertain counts as fast, so that the
// trials of a round differ and the effects of all knobs become known. Proposals never wait for observations.
#include "tuner/Model/KnobEffects.h"
#include "tuner/Strategies/PointIndex.h"
#include "tuner/Strategies/Registry.h"
#include "tuner/Strategies/Shuffle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace heddle::tuner {

namespace {

struct HalvingOptions {
  int64_t pool = 4096;
  int64_t round = 16;
  int64_t optimism = 50;

  template <class F> static void fields(F &&f) {
    f("pool", &HalvingOptions::pool, OptionRange{1, 1 << 20}, "points that the first round chooses from");
    f("round", &HalvingOptions::round, OptionRange{1, 1 << 20}, "trials before the pool is halved");
    f("optimism", &HalvingOptions::optimism, OptionRange{0, 1000},
      "how much faster than expected a point counts, in percent of its uncertainty");
  }
};

// What a failure says of the points that share its choices, and how much of what a point is faster than expected is
// believed of its neighbours.
constexpr double kFailureLog = 0.2, kNeighbourShare = 0.5;

class Halving : public Strategy {
public:
  Halving(StrategyInput input, const HalvingOptions &options)
      : space(*input.space), points(std::move(input.feasible)), cost(std::move(input.cost)), options(options),
        effects(space) {
    if (!input.hasPrior || !cost) {
      cost = [](const Point &) { return 1.0; };
      std::mt19937_64 random{1};
      shuffleFrom(points, 0, random);
    }
    index.emplace(points);
    state.assign(points.size(), State::fresh);
  }

  std::optional<Point> propose() override {
    if (pool.empty() && !refill())
      return std::nullopt;
    const size_t chosen = favourite();
    const Entry entry = pool[chosen];
    pool[chosen] = pool.back();
    pool.pop_back();
    state[entry.point] = State::tried;
    near.erase(entry.point);
    effects.expect(points[entry.point]);
    if (++inRound == size_t(options.round)) {
      inRound = 0;
      halve();
    }
    return points[entry.point];
  }

  void observe(const PointTrial &trial) override {
    const std::optional<uint32_t> place = index->find(trial.point);
    const bool isOurs = place && state[*place] == State::tried;
    const double us = trial.medianUs > 0 ? trial.medianUs : trial.minUs;
    if (isFailure(trial.outcome) || !(us > 0)) {
      effects.observe(trial.point, effects.mean(trial.point) + kFailureLog, isOurs);
      return;
    }
    const double logRatio = std::log(us) - logCost(trial.point);
    effects.observe(trial.point, logRatio, isOurs);
    if (trial.isUsable() && trial.medianUs < bestUs) {
      bestUs = trial.medianUs;
      bestPoint = trial.point;
      bestLogRatio = logRatio;
      poolNeighbours();
    }
  }

private:
  enum class State : uint8_t { fresh, pooled, dropped, tried };
  struct Entry {
    uint32_t point;
    double logCost;
  };

  double logCost(const Point &point) const {
    const double us = cost(point);
    return us > 0 && std::isfinite(us) ? std::log(us) : 1e3;
  }

  // Logarithm of the expected time.
  double expectation(const Entry &entry) const {
    const double leftover = near.count(entry.point) ? bestLogRatio - effects.mean(bestPoint) : 0;
    return entry.logCost + effects.mean(points[entry.point]) + kNeighbourShare * std::min(leftover, 0.0);
  }

  size_t favourite() const {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < pool.size(); ++i) {
      const double uncertainty = effects.deviation(points[pool[i].point]);
      const double hoped = expectation(pool[i]) - double(options.optimism) / 100 * uncertainty;
      if (hoped < least || (hoped == least && pool[i].point < pool[best].point)) {
        least = hoped;
        best = i;
      }
    }
    return best;
  }

  // Keeps the better part of the pool, by expectation.
  void keepBest(size_t count) {
    if (pool.size() <= count)
      return;
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < pool.size(); ++i)
      order.emplace_back(expectation(pool[i]), pool[i].point);
    std::nth_element(order.begin(), order.begin() + long(count), order.end());
    const std::pair<double, size_t> first = order[count];
    std::vector<Entry> kept;
    for (const Entry &entry : pool) {
      const bool isKept = std::make_pair(expectation(entry), size_t(entry.point)) < first;
      state[entry.point] = isKept ? State::pooled : State::dropped;
      (isKept ? kept : dropped).push_back(entry);
    }
    pool = std::move(kept);
  }

  void halve() { keepBest(std::max<size_t>((pool.size() + 1) / 2, size_t(options.round))); }

  // The best of what was dropped and of as many more in the order of the model. False: nothing is left.
  bool refill() {
    for (const Entry &entry : dropped)
      if (state[entry.point] == State::dropped)
        pool.push_back(entry);
    dropped.clear();
    for (size_t taken = 0; next < points.size() && taken < size_t(options.pool); ++next)
      if (state[next] == State::fresh) {
        pool.push_back({uint32_t(next), logCost(points[next])});
        ++taken;
      }
    for (const Entry &entry : pool)
      state[entry.point] = State::pooled;
    keepBest(size_t(options.pool));
    return !pool.empty();
  }

  void poolNeighbours() {
    near.clear();
    for (const Point &neighbour : space.neighbours(bestPoint)) {
      const std::optional<uint32_t> place = index->find(neighbour);
      if (!place || state[*place] == State::tried)
        continue;
      near.insert(*place);
      if (state[*place] != State::pooled)
        pool.push_back({*place, logCost(neighbour)});
      state[*place] = State::pooled;
    }
  }

  const SearchSpace &space;
  std::vector<Point> points;
  std::function<double(const Point &)> cost;
  const HalvingOptions options;
  KnobEffects effects;
  std::optional<PointIndex> index;
  std::vector<State> state;
  std::vector<Entry> pool, dropped; // of the dropped, some may be pooled again or tried
  std::set<uint32_t> near;          // untried neighbours of the best point
  size_t next = 0, inRound = 0;
  double bestUs = std::numeric_limits<double>::infinity(), bestLogRatio = 0;
  Point bestPoint;
};

Result<std::unique_ptr<Strategy>> create(StrategyInput input, const OptionTexts &texts) {
  HEDDLE_ASSIGN(HalvingOptions options, parseOptions<HalvingOptions>(texts));
  return std::unique_ptr<Strategy>(std::make_unique<Halving>(std::move(input), options));
}

} // namespace

StrategyInfo halvingStrategy() {
  return {"halving", "the cost model's favourites, corrected and halved round by round, and neighbours of the fastest",
          describeOptions<HalvingOptions>(), create};
}

} // namespace heddle::tuner
