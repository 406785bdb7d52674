#include "runtime/Distributed/RankWords.h"

namespace heddle {

std::string ranksText(const std::vector<int32_t> &ranks) {
  constexpr size_t kMostNamed = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kMostNamed; ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kMostNamed)
    text += " and " + std::to_string(ranks.size() - kMostNamed) + " others";
  return text;
}

std::string limitText(std::chrono::milliseconds limit) {
  return limit.count() % 1000 ? std::to_string(limit.count()) + " ms" : std::to_string(limit.count() / 1000) + " s";
}

Status notCome(const char *operation, const std::string &awaited, std::chrono::milliseconds limit) {
  return Status::unavailable(std::string(operation) + ": waited " + limitText(limit) + " for " + awaited);
}

} // namespace heddle
