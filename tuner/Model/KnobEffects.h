//===- KnobEffects.h - what a search learns about an estimate -----------------===//
// Owns the correction of an estimate while a search runs: an additive effect of every value of every knob on the
// logarithm of the time, with how uncertain each still is (Bayesian linear regression, one rank-one step a trial).
#pragma once

#include "tuner/Space/SearchSpace.h"

#include <vector>

namespace heddle::tuner {

// Not thread-safe. Deterministic.
class KnobEffects {
public:
  explicit KnobEffects(const SearchSpace &space);

  // A trial of the point is under way: the same knowledge need not be bought twice.
  void expect(const Point &point);
  // What the trial showed: log(time / estimate). `wasExpected`: expect was called for the point.
  void observe(const Point &point, double logRatio, bool wasExpected);

  // Expected log(time / estimate) of a point.
  double mean(const Point &point) const;
  // How far off that may be, one standard deviation, once all that is expected has been observed.
  double deviation(const Point &point) const;

private:
  using Matrix = std::vector<double>;

  void places(const Point &point) const; // into `active`
  // covariance x features, into `product`; returns features x that.
  double project(const Matrix &covariance) const;
  void shrink(Matrix &covariance, double variance) const;

  std::vector<size_t> firstOf; // of each knob's values
  size_t size = 0;
  std::vector<double> effects;
  Matrix seen, expected; // covariances, of what was observed, and of that and what is under way
  mutable std::vector<size_t> active;
  mutable std::vector<double> product;
};

} // namespace heddle::tuner
