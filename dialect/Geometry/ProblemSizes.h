// Owns the sizes and tensors for which expressions are evaluated, and how far an evaluation may go.
#pragma once

#include "dialect/Geometry/TensorData.h"

namespace heddle::attn {

using WideInt = __int128;

/// A count over all branches and heads takes at most so many evaluations of pieces, about a second, unless a caller
/// allows more.
inline constexpr int64_t kMostEvaluations = int64_t(1) << 19;

/// Concrete sizes of one call. Lengths and heads are >= 0; `parameters` has one value per run-time size.
struct ProblemSizes {
  int64_t heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0;
  std::vector<int64_t> parameters;
  TensorData tensors = {};                    ///< of integers, as far as they are given
  int64_t mostEvaluations = kMostEvaluations; ///< of one count; what takes more is a bound, or unknown
};

struct TileShape {
  int64_t rows = 128, columns = 128;
};

} // namespace heddle::attn
