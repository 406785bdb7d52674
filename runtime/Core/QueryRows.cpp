#include "runtime/Core/QueryRows.h"

#include "runtime/Core/KernelRecord.h"

#include <algorithm>

namespace heddle {

int64_t queryRowsOf(int64_t queries, int64_t heads, int64_t kvHeads, const CallShape &call) {
  constexpr int64_t kMany = 256;
  static_assert(kMany < ProblemBucket::kManyRows, "many have another default than any number");
  const KindBase base = call.kind.base;
  if (base != KindBase::decode && base != KindBase::decodeInvariant && base != KindBase::cascade)
    return queries;
  const int64_t shared = kvHeads > 0 ? std::clamp<int64_t>(heads / kvHeads, 1, kMany) : 1;
  return std::min(std::clamp<int64_t>(queries, 0, kMany) * shared, kMany); // sizes are whatever a caller gives
}

} // namespace heddle
