//===- KernelRecord.cpp -----------------------------------------------------===//
#include "runtime/Core/KernelRecord.h"

#include "runtime/Core/FieldText.h"

#include <algorithm>

namespace heddle {

int64_t sizeBucket(int64_t numerator, int64_t denominator) {
  unsigned __int128 reached = static_cast<unsigned __int128>(std::max<int64_t>(denominator, 1));
  unsigned __int128 wanted = static_cast<unsigned __int128>(std::max<int64_t>(numerator, 0));
  int64_t bucket = 0;
  for (; reached < wanted; reached *= 2)
    ++bucket;
  return bucket;
}

ProblemBucket ProblemBucket::of(int64_t workItems, int64_t smCount, int64_t visitedTiles, int64_t gqaRatio) {
  return {sizeBucket(workItems, smCount), sizeBucket(visitedTiles, workItems), gqaRatio};
}

std::string Trial::sessionKey(const WinnerKey &key) { return fieldDigest(key); }

const char *matchKindName(MatchKind kind) {
  switch (kind) {
  case MatchKind::exact: return "exact";
  case MatchKind::nearestBucket: return "nearest bucket";
  case MatchKind::sameArchitecture: return "same architecture";
  case MatchKind::untunedDefault: return "untuned default";
  case MatchKind::none: return "none";
  }
  return "none";
}

} // namespace heddle
