// Owns the limit of positions: sums and differences of two of them, and of a position and a size of a pattern that is
// cut at the limit, fit the 32 bits of kernels.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>

namespace heddle {

// Positions lie in [-kFarthestPosition, kFarthestPosition), and those of one call within kFarthestPosition of each
// other.
constexpr int64_t kFarthestPosition = int64_t(1) << 30;

// Row i of the queries stands at qOrigin + i, row j of the keys at kOrigin + j.
struct CallPositions {
  int64_t qOrigin = 0, seqlenQ = 0, kOrigin = 0, seqlenK = 0;
};

// invalidArgument with what is too far and how far it may be; any numbers may be given. Lengths >= 0 are the caller's
// to check.
Status checkPositions(const CallPositions &call);

// Of calls that need all keys, the first of which stands at 0, as sums over parts of them are not what one call gives:
// gradients of detached branches. unsupported: this is one of a later part.
Status checkAllKeys(int64_t kOrigin);

} // namespace heddle
