// Owns the form of the estimate and its parameters: a sum of terms, each the time of one kind of work on an ideal
// machine, times factors that lengthen or shorten the whole. What the terms and factors of a point are is the
// caller's to say; nothing here knows attention.
#pragma once

#include <string>
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

  // By name, of the terms or the factors; null if there is none.
  CostParameter *find(const std::string &name);
};

} // namespace heddle::tuner
