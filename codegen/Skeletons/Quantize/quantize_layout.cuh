// What the two halves of the quantize skeleton must agree on, said once. Read alike by NVRTC and by the host's compiler.
#pragma once

namespace heddle {
namespace quantize {

constexpr int kUnitElements = 8;   // of a row, that one thread loads and converts at a time
constexpr int kTensors = 3;        // q, k and v
constexpr int kWordsOfTicket = 32; // of the counters: a line of its own, before those of heads
constexpr int kWordsOfHead = 2;    // its largest magnitude so far, as the bits of a float, and pieces that are in it
constexpr int kWordsOfColumn =
    4; // of k that is smoothed: its sum in two words, its largest element and the largest negated one
constexpr int kControlBytes = 1024; // of shared memory: what the threads of a block tell each other

// Whole rows that the threads of a block load at a time, a unit each; the last threads may be idle.
template <class Int> constexpr Int stepRows(Int warps, Int dim) { return warps * 32 * kUnitElements / dim; }

} // namespace quantize
} // namespace heddle
