// What the two halves of the cascade skeleton must agree on, beside decode_layout.cuh. Read alike by NVRTC and by the host's
// compiler.
#pragma once

namespace heddle {
namespace cascade {

// Sequences that share keys have at most so many packed rows each: one unit has them all. More of them read keys often enough
// by themselves.
constexpr int kMostRows = 64;
// Keys in common that are worth a group, in key tiles.
constexpr int kLeastTiles = 2;

// What the first launch finds out, in words: how many groups and rows of queries there are, a record of each group, a record
// of each sequence, and which row of q each row of a group is.
constexpr int kHeadWords = 8, kGroupWords = 8, kSequenceWords = 4;
// Of a group of `sequences` there are at most half as many.
template <class Int> constexpr Int firstSequenceWord(Int sequences) {
  return sequences * (kGroupWords / 2) + kHeadWords;
}
template <class Int> constexpr Int firstRowWord(Int sequences) {
  return firstSequenceWord(sequences) + sequences * kSequenceWords;
}

// A state of a row of one head: value_dim floats, and its lse in the first of four more. Each row has two, of the keys that it
// shares and of its own.
constexpr int kStatesOfRow = 2;
template <class Int> constexpr Int stateBytes(Int valueDim) { return (valueDim + 4) * 4; }

} // namespace cascade
} // namespace heddle
