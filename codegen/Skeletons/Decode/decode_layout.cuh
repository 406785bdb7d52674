// What the two halves of the decode skeleton must agree on, said once. Read alike by NVRTC and by the host's compiler.
#pragma once

namespace heddle {
namespace decode {

constexpr int kRows = 16; // packed rows of a group: those of one mma
// A tall unit has a group for each warp. The warps of another one have the same rows and share the keys of a tile.
// A key tile of a tall unit counts as so many where work is dealt out: it takes a block that much longer than one of few
// rows takes to come from memory. 512 queries and 31 sequences of one, 8k keys each, 32/8 heads, on an H200: 604 us where
// it counts once, 4 warps 533 us; 8 warps 543 us where it counts twice, 477 us so.
template <class Int> constexpr Int tallWork(Int warps) { return warps / 2; }
constexpr int kControlBytes = 512; // of shared memory: what the threads of a block tell each other, or keep there

// The state of 16 rows: for each half of them, 8 rows, the pairs of value tiles, 16 bytes a lane, then row maxima and
// sums, 8 bytes a lane.
constexpr int kPairBytes = 32 * 16, kEndBytes = 32 * 8;
template <class Int> constexpr Int halfBytes(Int valueDim) { return valueDim / 16 * kPairBytes + kEndBytes; }
template <class Int> constexpr Int stateBytes(Int valueDim) { return 2 * halfBytes(valueDim); }
// In the workspace each warp of a block has row maxima and sums of its own beside its columns.
template <class Int> constexpr Int blockHalfBytes(Int valueDim, Int warps) {
  return halfBytes(valueDim) + (warps - 1) * kEndBytes;
}
template <class Int> constexpr Int blockStateBytes(Int valueDim, Int warps) {
  return 2 * blockHalfBytes(valueDim, warps);
}

// Keys are below 2^30. Four times the number of one, times 2^62 / page size, rounded up, is its page in the upper 64 bits.
constexpr int kInverseShift = 62;
constexpr int kMostKeys = 1 << 30; // of a sequence

// A block leaves states of at most two units: of the one that its piece begins within, and of the one that it ends within.
constexpr int kSlotsOfBlock = 2;
// States are joined by so many; those that come of it in one further step.
constexpr int kFanIn = 8;
// Kernels whose units fall into parts of their own (line_parts.cuh): so many parts of so many keys each; then in each octave of
// keys, twice as far as all before it, so many.
constexpr int kPartKeys = 128, kFirstParts = 128, kPartsOfOctave = 32;
// What a block keeps beside the states of parts and of teams: sums of a team and of a unit.
constexpr int kSumsOfBlock = 2;
// Words of arrivals: of each slot a word for each warp, at the first step and at the second.
constexpr int kArrivalSteps = 2;

} // namespace decode
} // namespace heddle
