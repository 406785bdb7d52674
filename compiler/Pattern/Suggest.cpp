#include "compiler/Pattern/Suggest.h"

#include <algorithm>
#include <numeric>

namespace heddle {

/// Levenshtein distance: insertions, deletions and replacements of one letter.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string nearest(const std::string &word, const std::vector<std::string> &candidates) {
  std::string best;
  // one letter has nothing in common with another
  size_t allowed = std::min(std::max<size_t>(1, (word.size() + 1) / 3) + 1, word.size());
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance < allowed) {
      allowed = distance;
      best = candidate;
    }
  }
  return best;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  std::string best = nearest(word, candidates);
  return best.empty() ? "" : ", did you mean '" + best + "'?";
}

} // namespace heddle
