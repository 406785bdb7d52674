//===- Fit.h - parameters of a cost model from recorded trials ----------------===//
#pragma once

#include "runtime/Core/Status.h"
#include "tuner/Model/CostModel.h"

namespace heddle::tuner {

// Least squares on the logarithm of the time, held near a start by a ridge: a parameter that no trial says anything of
// keeps its start. Deterministic: the same samples in the same order give the same parameters.

struct CostSample {
  CostFeatures features;
  double us = 0; // above 0
};

struct CostFit {
  CostModel model;
  double rms = 0; // of the logarithm of estimate over time; 0.1 is about 10%
  int steps = 0;
};

// Refused: no samples, features of other places than `start`, times or terms that are not positive.
Result<CostFit> fitCostModel(const CostModel &start, const std::vector<CostSample> &samples);

// {"name", value}, a line each, as compiler/Session/CostParameters.cpp holds them, with four digits.
std::string listOf(const CostModel &model);

} // namespace heddle::tuner
