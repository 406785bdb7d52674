#include "tuner/Search/TrialBook.h"

#include <algorithm>
#include <limits>

namespace heddle::tuner {

const PointTrial *TrialBook::find(const Point &point) const {
  const auto known = trials.find(point);
  return known == trials.end() ? nullptr : &known->second;
}

const PointTrial &TrialBook::add(PointTrial trial, std::shared_ptr<Candidate> candidate) {
  const Point point = trial.point;
  const PointTrial &kept = trials[point] = std::move(trial);
  if (!kept.isUsable())
    return kept;
  if (!fastest || isBetter(kept, *fastest))
    fastest = &kept;
  if (!candidate)
    return kept;
  hold(point, std::move(candidate));
  if (candidates.size() > mostCandidates)
    candidates.erase(std::max_element(candidates.begin(), candidates.end(), [&](const auto &a, const auto &b) {
      return isBetter(trials.at(a.first), trials.at(b.first));
    }));
  return kept;
}

void TrialBook::replace(PointTrial trial) {
  candidates.erase(trial.point);
  const Point point = trial.point;
  trials[point] = std::move(trial);
}

std::shared_ptr<Candidate> TrialBook::candidateOf(const Point &point) const {
  const auto held = candidates.find(point);
  return held == candidates.end() ? nullptr : held->second;
}

double TrialBook::bestUs() const { return fastest ? fastest->medianUs : std::numeric_limits<double>::infinity(); }

std::vector<const PointTrial *> TrialBook::usableBestFirst() const {
  std::vector<const PointTrial *> usable;
  for (const auto &[point, trial] : trials)
    if (trial.isUsable())
      usable.push_back(&trial);
  std::sort(usable.begin(), usable.end(), [](const PointTrial *a, const PointTrial *b) { return isBetter(*a, *b); });
  return usable;
}

std::vector<Entrant> TrialBook::entrants(size_t most, const std::string &incumbent) const {
  std::vector<Entrant> result;
  for (const PointTrial *trial : usableBestFirst())
    if (result.size() < most || trial->config == incumbent)
      result.push_back({*trial, candidateOf(trial->point)});
  return result;
}

std::array<size_t, kOutcomeCount> TrialBook::outcomes() const {
  std::array<size_t, kOutcomeCount> counts{};
  for (const auto &[point, trial] : trials)
    ++counts[size_t(trial.outcome)];
  return counts;
}

} // namespace heddle::tuner
