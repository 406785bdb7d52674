// Owns what a call counts as rows of a head where kernels are chosen by them (ProblemBucket).
#pragma once

#include "runtime/Core/CallShape.h"

#include <cstdint>

namespace heddle {

// Of calls of so many queries, which are their rows; of sequences, what one has for each kv head, whose heads read its keys
// together, and at most 256: most calls of them have one query of each, so any number of rows is few there, and many are told
// from it. 0 heads or kv heads are unknown, each query head has its own.
int64_t queryRowsOf(int64_t queries, int64_t heads, int64_t kvHeads, const CallShape &call);

} // namespace heddle
