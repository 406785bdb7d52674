// How much two lists agree on an order.
#pragma once

#include <vector>

namespace heddle::tuner {

// The rank correlation of two lists of one length; 0 if either has no two different values.
double spearman(const std::vector<double> &a, const std::vector<double> &b);

} // namespace heddle::tuner
