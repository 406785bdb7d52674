// Owns the trials of one session, known and new, and the candidates of the best few: what the search, the final and
// the choice of the winner all ask.
#pragma once

#include "tuner/Measure/Evaluator.h"
#include "tuner/Search/Final.h"
#include "tuner/Space/Trial.h"

#include <array>
#include <map>
#include <memory>

namespace heddle::tuner {

class TrialBook {
public:
  explicit TrialBook(size_t mostCandidates) : mostCandidates(mostCandidates) {}

  size_t size() const { return trials.size(); }
  // Null: nobody tried it.
  const PointTrial *find(const Point &point) const;
  // A new trial or a known one, in the place of an older one. A usable one may be the best; its candidate is kept while
  // it is one of the best few.
  const PointTrial &add(PointTrial trial, std::shared_ptr<Candidate> candidate = nullptr);
  // What was usable is not any more: its candidate goes.
  void replace(PointTrial trial);
  void hold(const Point &point, std::shared_ptr<Candidate> candidate) { candidates[point] = std::move(candidate); }
  // Null: not at hand.
  std::shared_ptr<Candidate> candidateOf(const Point &point) const;

  // The best that was added; null: none is usable.
  const PointTrial *best() const { return fastest; }
  double bestUs() const; // infinity: none
  std::vector<const PointTrial *> usableBestFirst() const;
  // The best few and the one of this text, with the candidates that are at hand.
  std::vector<Entrant> entrants(size_t most, const std::string &incumbent) const;
  // How many trials there are of each outcome.
  std::array<size_t, kOutcomeCount> outcomes() const;

private:
  size_t mostCandidates;
  std::map<Point, PointTrial> trials;
  std::map<Point, std::shared_ptr<Candidate>> candidates;
  const PointTrial *fastest = nullptr; // in trials
};

} // namespace heddle::tuner
