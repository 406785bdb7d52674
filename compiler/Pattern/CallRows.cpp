#include "compiler/Pattern/CallRows.h"

#include "runtime/Core/QueryRows.h"

#include <algorithm>

namespace heddle {

int64_t queryRowsOf(const ProblemShape &shape, const CallShape &call) {
  const int64_t sequences = std::max<int64_t>(shape.batchOfTensors(), 1), rows = shape.batch * shape.seqlenQ;
  return queryRowsOf((rows + sequences - 1) / sequences, shape.heads, shape.kvHeads, call);
}

} // namespace heddle
