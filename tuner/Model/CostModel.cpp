#include "tuner/Model/CostModel.h"

#include <cmath>

namespace heddle::tuner {

double CostModel::estimate(const CostFeatures &features) const {
  double us = 0, exponent = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    us += terms[i].value * features.terms[i];
  for (size_t i = 0; i < factors.size(); ++i)
    exponent += factors[i].value * features.factors[i];
  return us * std::exp(exponent);
}

CostParameter *CostModel::find(const std::string &name) {
  for (auto *list : {&terms, &factors})
    for (CostParameter &parameter : *list)
      if (parameter.name == name)
        return &parameter;
  return nullptr;
}

} // namespace heddle::tuner
