// Whose rows they are that a lane scores: those of a sequence, or, of a group, each of one of its own. Scores may ask for
// positions, lengths and numbers of sequences.
#pragma once

#include "Decode/packed_rows.cuh"

namespace heddle {

// All rows are those of the unit's sequence.
template <class K, bool AreOfGroups = (K::kShares && K::Pattern::kHasScore)> struct RowContexts {
  DEV RowContexts(const ParamsOf<K> &, const Unit<K> &, const PackedRow (&)[2]) {}
  DEV int32_t position(const Context<K> &context, int32_t, int32_t index) const { return context.qOrigin + index; }
  DEV void give(Context<K> &, int32_t) const {}
};

template <class K> struct RowContexts<K, true> {
  using Params = ParamsOf<K>;

  Sequence<K> of[2];
  int32_t first[2]; // query of the unit with which it begins

  DEV RowContexts(const Params &p, const Unit<K> &unit, const PackedRow (&row)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      of[half] = unit.sequence, first[half] = 0;
      if (unit.isGroup())
        find(p, unit.sequence, row[half].index, half);
    }
  }
  DEV int32_t position(const Context<K> &, int32_t half, int32_t index) const {
    return of[half].qOrigin() + index - first[half];
  }
  DEV void give(Context<K> &context, int32_t half) const {
    context.batch = of[half].number;
    context.seqlenQ = of[half].rows;
    context.seqlenK = of[half].keys;
    context.qOrigin = of[half].qOrigin();
  }

private:
  // The sequence of query `index` of a group.
  DEV void find(const Params &p, const Sequence<K> &group, int32_t index, int32_t half) {
    int32_t number = group.number;
    if (!p.cuSeqlensQ) {
      const int32_t behind = static_cast<uint32_t>(index) / static_cast<uint32_t>(p.seqlenQ);
      number += behind;
      first[half] = behind * p.seqlenQ;
    } else {
#pragma unroll 1
      for (int32_t step = K::kThreads / 2; step > 0; step /= 2) // more sequences no group has
        if (number + step < p.sequences && p.cuSeqlensQ[number + step] <= group.firstRow + index)
          number += step;
      first[half] = p.cuSeqlensQ[number] - group.firstRow;
    }
    of[half] = Sequence<K>::read(p, number, 0);
  }
};

} // namespace heddle
