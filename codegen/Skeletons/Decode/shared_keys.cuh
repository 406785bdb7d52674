// Keys that a group of sequences has in common, in kernels that know of them (kShares). The queries of a group meet them as
// rows of units of its own, so each is read as often as there are units; lines of groups come before those of sequences,
// whose walks leave these tiles out. In other kernels nothing here adds anything.
#pragma once

#include "Decode/cascade_layout.cuh"
#include "Decode/sequences.cuh"
#include "Shared/tile_numbers.cuh"

namespace heddle {

// Written by the launch before. `sequence`: the first one; `rows`: the queries of all of them; key tiles [begin, end).
struct GroupRecord {
  int32_t sequence, rows, begin, end, state;
};

// Of a line or a unit: the key tiles that its sequence, or its group, shares. `state`: number of the first of its rows among
// those of all groups. `isOfGroup`: 1 of a group, else 0.
template <class K, bool Shares = K::kShares != 0> struct KeyShare {
  using Params = ParamsOf<K>;
  using Range = typename K::Pattern::Range;

  int32_t begin, end, state, isOfGroup;

  DEV static int32_t groups(const Params &p) { return p.sharing[0]; }
  DEV static GroupRecord group(const Params &p, int32_t number) {
    const int32_t *const words = p.sharing + cascade::kHeadWords + number * cascade::kGroupWords;
    return {words[0], words[1], words[2], words[3], words[4]};
  }
  DEV static KeyShare ofGroup(const GroupRecord &group) { return {group.begin, group.end, group.state, 1}; }
  DEV static KeyShare ofSequence(const Params &p, int32_t sequence) {
    const int32_t *const words =
        p.sharing + cascade::firstSequenceWord(p.sequences) + sequence * cascade::kSequenceWords;
    return {words[0], words[1], words[2], 0};
  }
  template <class OfLane> DEV static KeyShare ofLane(const KeyShare &own, const OfLane &of) {
    return {of(own.begin), of(own.end), of(own.state), of(own.isOfGroup)};
  }

  DEV bool isGroup() const { return isOfGroup != 0; }
  DEV int32_t tiles() const { return end - begin; }
  DEV int32_t keyEnd() const { return end * K::kBlockN; }
  DEV Range range() const { return {begin, end, begin, end, 0}; }

  // In the walk of a sequence: a tile that it leaves out, where those end that follow it in its range, and where tiles end
  // that it has.
  DEV bool isShared(int32_t tile) const { return begin <= tile && tile < end; }
  DEV int32_t behindShared(int32_t rangeEnd) const { return min(end, rangeEnd); }
  DEV int32_t endOfOwn(int32_t tile, int32_t rangeEnd) const { return tile < begin ? min(begin, rangeEnd) : rangeEnd; }

  // Rows leave states of a part of their keys, that of a query of a head here, instead of results.
  DEV bool leavesStates() const { return tiles() > 0; }
  DEV char *stateOf(const Params &p, int32_t index, int32_t head) const {
    const int64_t row = static_cast<int64_t>(state + index) * p.heads + head;
    return p.sharedStates + (row * cascade::kStatesOfRow + !isGroup()) * cascade::stateBytes(K::kValueDim);
  }
};

template <class K> struct KeyShare<K, false> {
  using Params = ParamsOf<K>;
  using Range = typename K::Pattern::Range;

  DEV static int32_t groups(const Params &) { return 0; }
  DEV static GroupRecord group(const Params &, int32_t) { return {}; }
  DEV static KeyShare ofGroup(const GroupRecord &) { return {}; }
  DEV static KeyShare ofSequence(const Params &, int32_t) { return {}; }
  template <class OfLane> DEV static KeyShare ofLane(const KeyShare &, const OfLane &) { return {}; }

  DEV bool isGroup() const { return false; }
  DEV int32_t tiles() const { return 0; }
  DEV int32_t keyEnd() const { return 0; }
  DEV Range range() const { return {0, 0, 0, 0, 0}; }
  DEV bool isShared(int32_t) const { return false; }
  DEV int32_t behindShared(int32_t rangeEnd) const { return rangeEnd; }
  DEV int32_t endOfOwn(int32_t, int32_t rangeEnd) const { return rangeEnd; }
  DEV bool leavesStates() const { return false; }
  DEV char *stateOf(const Params &, int32_t, int32_t) const { return nullptr; }
};

// A row of q and out.
struct RowPlace {
  int32_t batch, row;
};

// Numbers and strides are not negative: a product of 32 and 64 bits each.
DEV int64_t rowOffset(const RowPlace &place, int32_t head, const int64_t (&stride)[3]) {
  return static_cast<uint32_t>(place.batch) * stride[0] + static_cast<uint32_t>(place.row) * stride[1] +
         static_cast<uint32_t>(head) * stride[2];
}

// Of a query by its number in a sequence, or in a group, whose sequences follow each other.
template <class K> DEV RowPlace placeOf(const ParamsOf<K> &p, const Sequence<K> &sequence, int32_t index) {
  RowPlace place = {sequence.batch, sequence.firstRow + index};
  if (K::kShares && !p.cuSeqlensQ && index >= p.seqlenQ) {
    const int32_t sequences = static_cast<uint32_t>(index) / static_cast<uint32_t>(p.seqlenQ);
    place.batch += sequences;
    place.row -= sequences * p.seqlenQ;
  }
  return place;
}

} // namespace heddle
