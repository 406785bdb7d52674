#include "runtime/Core/Positions.h"

#include <algorithm>
#include <string>

namespace heddle {
namespace {

constexpr const char *kReason = ": positions lie in [-2^30, 2^30)";

std::string num(int64_t value) { return std::to_string(value); }

Status checkAxis(const char *origin, const char *rows, int64_t first, int64_t count) {
  if (count > kFarthestPosition)
    return Status::invalidArgument("expected at most " + num(kFarthestPosition) + " " + rows + ", got " + num(count) +
                                   kReason);
  if (first < -kFarthestPosition || first > kFarthestPosition - count)
    return Status::invalidArgument(std::string(origin) + ": expected " + num(-kFarthestPosition) + " to " +
                                   num(kFarthestPosition - count) + " for " + num(count) + " " + rows + ", got " +
                                   num(first) + kReason);
  return {};
}

} // namespace

Status checkPositions(const CallPositions &call) {
  HEDDLE_TRY(checkAxis("q_origin", "queries", call.qOrigin, call.seqlenQ));
  HEDDLE_TRY(checkAxis("k_origin", "keys", call.kOrigin, call.seqlenK));
  if (call.seqlenQ == 0 || call.seqlenK == 0)
    return {};
  const int64_t first = std::min(call.qOrigin, call.kOrigin);
  const int64_t end = std::max(call.qOrigin + call.seqlenQ, call.kOrigin + call.seqlenK);
  if (end - first > kFarthestPosition)
    return Status::invalidArgument("q_origin and k_origin: expected queries and keys within " + num(kFarthestPosition) +
                                   " positions, got " + num(end - first) + ", from " + num(first) + " to " +
                                   num(end - 1));
  return {};
}

Status checkAllKeys(int64_t kOrigin) {
  if (kOrigin == 0)
    return {};
  return Status::unsupported("k_origin: expected 0, the first of all keys, got " + num(kOrigin) +
                             ": the pattern says gradient(detached), and the delta of a branch needs all of its keys, "
                             "so that gradients of parts of the keys do not sum up; call it once on all keys");
}

} // namespace heddle
