//===- KnobEffects.cpp ------------------------------------------------------------===//
#include "tuner/Model/KnobEffects.h"

#include <cmath>

namespace heddle::tuner {

namespace {

// Standard deviations before any trial: of the estimate's scale, of one value's effect, of what no effect explains.
constexpr double kScale = 0.5, kEffect = 0.1, kNoise = 0.1;

} // namespace

KnobEffects::KnobEffects(const SearchSpace &space) {
  for (const Knob &knob : space.knobs()) {
    firstOf.push_back(size);
    size += knob.values.size();
  }
  ++size; // the last place is the scale, which every point has
  effects.assign(size, 0);
  seen.assign(size * size, 0);
  for (size_t i = 0; i < size; ++i)
    seen[i * size + i] = i + 1 == size ? kScale * kScale : kEffect * kEffect;
  expected = seen;
}

void KnobEffects::places(const Point &point) const {
  active.clear();
  for (size_t knob = 0; knob < firstOf.size(); ++knob)
    active.push_back(firstOf[knob] + point.index[knob]);
  active.push_back(size - 1);
}

double KnobEffects::project(const Matrix &covariance) const {
  product.assign(size, 0);
  for (size_t place : active)
    for (size_t i = 0; i < size; ++i)
      product[i] += covariance[place * size + i];
  double variance = 0;
  for (size_t place : active)
    variance += product[place];
  return variance;
}

void KnobEffects::shrink(Matrix &covariance, double variance) const {
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j)
      covariance[i * size + j] -= product[i] * product[j] / variance;
}

void KnobEffects::expect(const Point &point) {
  places(point);
  const double variance = project(expected) + kNoise * kNoise;
  shrink(expected, variance);
}

void KnobEffects::observe(const Point &point, double logRatio, bool wasExpected) {
  if (!wasExpected)
    expect(point);
  const double off = logRatio - mean(point);
  const double variance = project(seen) + kNoise * kNoise;
  for (size_t i = 0; i < size; ++i)
    effects[i] += product[i] * off / variance;
  shrink(seen, variance);
}

double KnobEffects::mean(const Point &point) const {
  places(point);
  double sum = 0;
  for (size_t place : active)
    sum += effects[place];
  return sum;
}

double KnobEffects::deviation(const Point &point) const {
  places(point);
  double variance = 0;
  for (size_t a : active)
    for (size_t b : active)
      variance += expected[a * size + b];
  return std::sqrt(std::max(variance, 0.0));
}

} // namespace heddle::tuner
