//===- Fit.cpp - damped Gauss-Newton steps -------------------------------------===//
#include "tests/recorded/Fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace heddle::tuner {

namespace {

// The ridge, in units of squared logarithms: weights of terms may move by factors, exponents by tenths.
constexpr double kTermRidge = 0.3, kFactorRidge = 1;
constexpr int kMostSteps = 100;
constexpr double kEnough = 1e-10; // relative gain of a step after which no more are taken

using Vector = std::vector<double>;

// A symmetric system in place, by Cholesky; false if it is not positive definite.
bool solve(std::vector<Vector> &matrix, Vector &right) {
  const size_t size = right.size();
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (size_t k = 0; k < j; ++k)
        sum -= matrix[i][k] * matrix[j][k];
      if (i == j && !(sum > 0))
        return false;
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < i; ++k)
      right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t k = i + 1; k < size; ++k)
      right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return true;
}

// Unknowns: logarithms of the weights, then the exponents.
class Problem {
public:
  Problem(const CostModel &start, const std::vector<CostSample> &samples)
      : samples(samples), termCount(start.terms.size()) {
    for (const CostParameter &term : start.terms)
      origin.push_back(std::log(term.value));
    for (const CostParameter &factor : start.factors)
      origin.push_back(factor.value);
  }

  double residual(const CostSample &sample, const Vector &at, Vector *slope) const {
    double us = 0, exponent = 0;
    for (size_t i = 0; i < termCount; ++i)
      us += std::exp(at[i]) * sample.features.terms[i];
    for (size_t i = 0; i < sample.features.factors.size(); ++i)
      exponent += at[termCount + i] * sample.features.factors[i];
    if (slope) {
      for (size_t i = 0; i < termCount; ++i)
        (*slope)[i] = std::exp(at[i]) * sample.features.terms[i] / us;
      std::copy(sample.features.factors.begin(), sample.features.factors.end(), slope->begin() + long(termCount));
    }
    return std::log(us) + exponent - std::log(sample.us);
  }

  double ridge(size_t i) const { return i < termCount ? kTermRidge : kFactorRidge; }

  double misfit(const Vector &at) const {
    double sum = 0;
    for (const CostSample &sample : samples) {
      const double off = residual(sample, at, nullptr);
      sum += off * off;
    }
    return sum;
  }

  double cost(const Vector &at) const {
    double sum = misfit(at);
    for (size_t i = 0; i < at.size(); ++i)
      sum += ridge(i) * (at[i] - origin[i]) * (at[i] - origin[i]);
    return sum;
  }

  void linearise(const Vector &at, std::vector<Vector> &matrix, Vector &right) const {
    const size_t size = at.size();
    matrix.assign(size, Vector(size, 0));
    right.assign(size, 0);
    Vector slope(size);
    for (const CostSample &sample : samples) {
      const double off = residual(sample, at, &slope);
      for (size_t i = 0; i < size; ++i) {
        right[i] -= slope[i] * off;
        if (slope[i] != 0)
          for (size_t j = 0; j <= i; ++j)
            matrix[i][j] += slope[i] * slope[j];
      }
    }
    for (size_t i = 0; i < size; ++i) {
      matrix[i][i] += ridge(i);
      right[i] -= ridge(i) * (at[i] - origin[i]);
    }
  }

  const std::vector<CostSample> &samples;
  size_t termCount;
  Vector origin;
};

Status check(const CostModel &start, const std::vector<CostSample> &samples) {
  if (samples.empty())
    return Status::invalidArgument("cost model: no trials to fit");
  for (const CostSample &sample : samples) {
    const CostFeatures &features = sample.features;
    if (features.terms.size() != start.terms.size() || features.factors.size() != start.factors.size())
      return Status::invalidArgument("cost model: features of another model");
    if (!(sample.us > 0) || !(std::accumulate(features.terms.begin(), features.terms.end(), 0.0) > 0))
      return Status::invalidArgument("cost model: expected times and terms above 0");
  }
  return {};
}

} // namespace

Result<CostFit> fitCostModel(const CostModel &start, const std::vector<CostSample> &samples) {
  HEDDLE_TRY(check(start, samples));
  const Problem problem(start, samples);
  Vector at = problem.origin, right;
  std::vector<Vector> matrix;
  double cost = problem.cost(at), damping = 1e-2;
  CostFit fit{start, 0, 0};
  for (bool isMoving = true; isMoving && fit.steps < kMostSteps; ++fit.steps) {
    problem.linearise(at, matrix, right);
    for (size_t i = 0; i < at.size(); ++i)
      matrix[i][i] *= 1 + damping;
    if (!solve(matrix, right))
      break;
    Vector next = at;
    for (size_t i = 0; i < at.size(); ++i)
      next[i] += right[i];
    const double nextCost = problem.cost(next);
    if (nextCost < cost) {
      isMoving = cost - nextCost > kEnough * cost;
      at = std::move(next);
      cost = nextCost;
      damping = std::max(damping / 5, 1e-9);
    } else {
      damping *= 5;
      isMoving = damping < 1e9;
    }
  }
  for (size_t i = 0; i < start.terms.size(); ++i)
    fit.model.terms[i].value = std::exp(at[i]);
  for (size_t i = 0; i < start.factors.size(); ++i)
    fit.model.factors[i].value = at[start.terms.size() + i];
  fit.rms = std::sqrt(problem.misfit(at) / double(samples.size()));
  return fit;
}

std::string listOf(const CostModel &model) {
  std::string list;
  for (const auto *part : {&model.terms, &model.factors})
    for (const CostParameter &parameter : *part) {
      char value[32];
      std::snprintf(value, sizeof value, "%.4g", parameter.value);
      list += "{\"" + parameter.name + "\", " + value + "},\n";
    }
  return list;
}

} // namespace heddle::tuner
