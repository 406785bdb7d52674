#include "compiler/Pattern/CallRows.h"

#include "runtime/Core/QueryRows.h"

namespace heddle {

int64_t queryRowsOf(const ProblemShape &shape, const CallShape &call) {
  const bool areBehindEachOther = shape.batch == 1 && shape.sequences > 1 && shape.seqlenQ > 0;
  const int64_t queries = areBehindEachOther ? (shape.seqlenQ - 1) / shape.sequences + 1 : shape.seqlenQ;
  return queryRowsOf(queries, shape.heads, shape.kvHeads, call);
}

} // namespace heddle
