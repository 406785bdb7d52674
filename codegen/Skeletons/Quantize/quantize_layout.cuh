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
constexpr int kWordsOfEnds =
    2; // of k that is smoothed, of a column of a block of rows with a scale of its own: its largest element and negated one
constexpr int kSpares = 2; // pieces of a block beyond those in slots of shared memory

// Whole rows that the threads of a block load at a time, a unit each; the last threads may be idle.
template <class Int> constexpr Int stepRows(Int warps, Int dim) { return warps * 32 * kUnitElements / dim; }

// Neighbouring elements of a row of q or k that are rotated together: lanes of one warp have all of them.
constexpr int kMostTogether = 32 * kUnitElements;
template <class Int> constexpr Int rotatedTogether(Int dim) {
  return (dim & -dim) < kMostTogether ? dim & -dim : Int(kMostTogether);
}

// Values that are written key-major are turned over by pieces: a row of keys for each dimension, in words, of which a power
// of two makes a row.
constexpr int kWordKeys = 4;
template <class Int> constexpr Int turnedRowWords(Int pieceRows) {
  Int words = 1;
  while (words * kWordKeys < pieceRows)
    words *= 2;
  return words;
}
template <class Int> constexpr Int turnedBytes(Int pieceRows, Int dim) {
  return turnedRowWords(pieceRows) * kWordKeys * dim;
}

// With slots two more have no elements.
constexpr int kControlWarps = 2;
template <class Int> constexpr Int warpsOfBlock(Int warps, Int slots) {
  return warps + (slots > 0 ? kControlWarps : 0);
}

// Of the place of a piece, in what the threads of a block tell each other. scaleRows: CallElements.
template <class Int> constexpr Int placeBytes(Int scaleRows) { return scaleRows > 0 ? 160 : 120; }
template <class Int> constexpr Int pieceBytes(Int warps, Int scaleRows) {
  return placeBytes(scaleRows) + (warps + 1) / 2 * 8;
}
template <class Int> constexpr Int piecesHere(Int slots) { return slots + kSpares; }

// Of shared memory: what the threads of a block tell each other. Without slots: three turns of two pieces and a word.
template <class Int> constexpr Int controlBytes(Int warps, Int slots, Int scaleRows) {
  return slots > 0 ? piecesHere(slots) * pieceBytes(warps, scaleRows) : 3 * (2 * pieceBytes(warps, scaleRows) + 8);
}

} // namespace quantize
} // namespace heddle
