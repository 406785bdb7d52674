#include "tuner/Model/Spearman.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::tuner {

namespace {

// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(values[a], a) < std::pair(values[b], b); });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = double(begin + end - 1) / 2;
  }
  return ranks;
}

} // namespace

double spearman(const std::vector<double> &a, const std::vector<double> &b) {
  const std::vector<double> ranksA = ranksOf(a), ranksB = ranksOf(b);
  const double mean = (double(a.size()) - 1) / 2;
  double both = 0, onlyA = 0, onlyB = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (ranksA[i] - mean) * (ranksB[i] - mean);
    onlyA += (ranksA[i] - mean) * (ranksA[i] - mean);
    onlyB += (ranksB[i] - mean) * (ranksB[i] - mean);
  }
  return onlyA > 0 && onlyB > 0 ? both / std::sqrt(onlyA * onlyB) : 0;
}

} // namespace heddle::tuner
