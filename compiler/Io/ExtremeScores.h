// Owns the changes to q and k that put a softmax to the test: single scores far above or below the
// others, and keys whose scores are -infinity.
#pragma once

#include "compiler/Io/AttentionInputs.h"

namespace heddle {

struct ScoreSpikes {
  int64_t count = 0; // per batch element and query head
  double value = 0;  // of a score, with the usual scale 1 / sqrt(head_dim)
};

// Gives `count` random pairs of a query and a key in every head a score near `value`: one element of
// the query and one of the key are set, the rest of the query row is 0, so that the products are exact
// in fp32 and only the softmax is put to the test. A pure function of its arguments. invalidArgument:
// the elements are beyond the dtype.
Status plantSpikes(AttentionInputs &inputs, const ScoreSpikes &spikes, uint64_t seed);

// Gives keys first to last a score of -infinity in fp32 in every row and head, by finite elements: two
// channels of k hold the most negative number and those of q hold 1, so that no NaN can arise before
// the softmax. In fp64 the score is finite and so low that the weight is 0 all the same, unless a row
// keeps none but such keys: fp32 has no answer there, so leave every row another key. invalidArgument:
// no such keys, fp16 (the products cannot overflow), or fewer than two channels.
Status sinkKeys(AttentionInputs &inputs, int64_t first, int64_t last);

} // namespace heddle
