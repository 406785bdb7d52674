//===- CostModel.h - an estimate of a point's time ---------------------------===//
// Owns the form of the estimate and its parameters: a sum of terms, each the time of one kind of work on an ideal
// machine, times factors that lengthen or shorten the whole. What the terms and factors of a point are is the
// caller's to say; nothing here knows attention. Fitting is in Fit.h.
#pragma once

#include "runtime/Core/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle::tuner {

// One point as a model sees it; places are those of CostModel::terms and factors.
struct CostFeatures {
  std::vector<double> terms;   // microseconds, none negative, at least one positive
  std::vector<double> factors; // 0 where a factor does not apply
};

struct CostParameter {
  std::string name;
  double value = 0;
  bool operator==(const CostParameter &other) const { return name == other.name && value == other.value; }
};

struct CostModel {
  std::vector<CostParameter> terms;   // weights of the terms, positive
  std::vector<CostParameter> factors; // exponents: a factor of x multiplies the time by exp(value * x)
  std::string family;                 // whose points it is made for; empty: anybody's

  // Microseconds. The features must have the places of this model.
  double estimate(const CostFeatures &features) const;

  // "family <name>" if it has one, then "term <name> <value>" and "factor <name> <value>", a line each, shortest digits
  // that read back the same.
  std::string text() const;
  // The values of a text for the parameters of `shape`; '#' begins a comment line. A factor that is 0 in
  // `shape` may be missing: the text is from before the choice. Refused with the line: another family, an unknown,
  // repeated or else missing parameter, a value that is no number, a weight that is not positive. A text without a
  // family is taken for one of this.
  static Result<CostModel> parse(const CostModel &shape, std::string_view text);
  // That the text names; empty if none.
  static std::string familyOf(std::string_view text);
};

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

} // namespace heddle::tuner
