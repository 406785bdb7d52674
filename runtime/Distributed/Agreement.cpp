#include "runtime/Distributed/Agreement.h"

namespace heddle {
namespace {

constexpr const char *kRefused = "refused ";

/// "rank 2: batch 3, rank 0 has batch 4"
Status checkAgreement(const std::vector<std::string> &texts) {
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    size_t begin = 0;
    while (texts[rank] != texts[0]) {
      auto lineOf = [&](const std::string &text) { return text.substr(begin, text.find('\n', begin) - begin); };
      if (const std::string mine = lineOf(texts[0]), other = lineOf(texts[rank]); mine != other)
        return Status::invalidArgument("the ranks of a group disagree: rank " + std::to_string(rank) + " has " + other +
                                       ", rank 0 has " + mine);
      begin = texts[0].find('\n', begin) + 1;
    }
  }
  return {};
}

} // namespace

Status agree(const Result<std::string> &mine, Transport &transport, Agreements &agreed, bool mayMeet) {
  if (mine && agreed.count(*mine))
    return {};
  if (!mayMeet) {
    HEDDLE_TRY(mine.status());
    return Status::unsupported(
        "call over a group: the stream is captured, and ranks cannot meet while it is: make such "
        "a call once before");
  }
  auto gathered = transport.gather(mine ? *mine : kRefused + mine.status().message());
  HEDDLE_TRY(mine.status()); // whatever becomes of the others
  HEDDLE_ASSIGN(const std::vector<std::string> texts, std::move(gathered));
  for (size_t rank = 0; rank < texts.size(); ++rank)
    if (texts[rank].rfind(kRefused, 0) == 0)
      return Status::unavailable("rank " + std::to_string(rank) +
                                 " takes no part: " + texts[rank].substr(std::string(kRefused).size()));
  HEDDLE_TRY(checkAgreement(texts));
  agreed.insert(*mine);
  return {};
}

} // namespace heddle
