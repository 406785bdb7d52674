// The parameter block of the quantize kernel. Its layout is described to the runtime by the slots of the launch plan
// (Quantize.cpp): change both together.
#pragma once

namespace heddle {

// q, k or v, and what becomes of it.
struct QuantizedTensor {
  const void *from;
  void *to;
  float *descale; // [batch, heads], or [batch, heads, blocks]
  int64_t fromStride[3],
      toStride[3]; // batch, row, head; in elements; of what is written key-major dim in the place of row
  int32_t rows, heads;
  int32_t piecesOfHead;          // or of a block with a scale of its own; at least one
  int32_t firstPiece, firstHead; // those of tensors before it count, of heads or blocks
};

// Of kernels that rotate rows of q and k: a sign for each of their columns.
template <bool Rotates> struct RotationField {
  const float *rotation;
};
template <> struct RotationField<false> {};

// Of kernels with scales of blocks: of each column of each block of k, kWordsOfEnds words; zero.
template <bool HasBlocks> struct EndsField {
  uint32_t *ends;
};
template <> struct EndsField<false> {};

template <class K> struct QuantizeParams : RotationField<K::kRotates != 0>, EndsField<(K::kScaleRows > 0)> {
  QuantizedTensor tensors[3];
  uint32_t *counters, *columns; // zero
  float *kMean;                 // [batch, heads of k, kHeadDim]; null: k is not smoothed
  int32_t *dropped;             // a word of each piece
  uint32_t *found;              // the same; zero
  int32_t batch, pieces;        // of all tensors
  int32_t lead;                 // a piece is converted so many numbers after its magnitudes are asked for
};

} // namespace heddle
