// Where a piece lies: rows of one head that a block takes at a time. Pieces are numbered tensor by tensor, kHeads
// heads by kHeads heads, and of these in turn. Where blocks of rows of q and k have scales of their own, these are what heads
// are else. Traits: kHeadDim, kValueDim, kWarps, kUnits, kHeads, kRotates, kScaleRows.
#pragma once

#include "Quantize/quantize_layout.cuh"
#include "Quantize/quantize_params.cuh"
#include "Shared/elements.cuh"

namespace heddle {

template <class K, int Dim> constexpr int kStepRows = quantize::stepRows(K::kWarps, Dim);
// What the threads with elements hold of a piece: kUnits units each.
template <class Traits> struct QuantizePieces : Traits {
  static constexpr int kUnitThreads = 32 * Traits::kWarps;
  static constexpr int kPieceRowsQK = Traits::kUnits * kStepRows<Traits, Traits::kHeadDim>;
  static constexpr int kPieceRowsV = Traits::kUnits * kStepRows<Traits, Traits::kValueDim>;
  static_assert(kPieceRowsQK >= 1 && kPieceRowsV >= 1, "a piece has whole rows");
  static constexpr bool kDimsDiffer = Traits::kHeadDim != Traits::kValueDim;
};

// Of this thread in rows of Dim elements: the column of all its units, and the row of the first one; others are
// kStepRows apart. A thread beyond whole rows has none.
template <class K, int Dim> struct UnitPlace {
  static constexpr int kUnitsOfRow = Dim / quantize::kUnitElements;
  int32_t firstRow, column;
  DEV explicit UnitPlace(int32_t thread = static_cast<int32_t>(threadIdx.x)) {
    firstRow = thread / kUnitsOfRow;
    column = (thread - firstRow * kUnitsOfRow) * quantize::kUnitElements;
  }
  // Of an element of a unit, as it is loaded, or when it is rotated (quantize_rotation.cuh).
  template <bool IsRotated> DEV int32_t columnOf(int element) const {
    constexpr int kTogether = quantize::rotatedTogether(Dim), kHalf = quantize::kUnitElements / 2;
    if constexpr (!IsRotated)
      return column + element;
    else
      return column - column % kTogether / 2 + element % kHalf + element / kHalf * (kTogether / 2);
  }
  DEV int32_t row(int unit) const { return unit * kStepRows<K, Dim> + firstRow; }
  DEV bool isIn(const int32_t rows, int unit) const { return firstRow < kStepRows<K, Dim> && row(unit) < rows; }
};

template <class K, bool HasBlocks = (K::kScaleRows > 0)> struct PiecePlace {
  const char *from;
  char *to;
  int64_t fromBytes, toBytes; // of a row; of key-major values toBytes of a dimension
  float *descale;             // of the head, if the piece is its first one, else null
  uint32_t *counters;         // of the head; null: there is no piece of this number
  uint32_t *columns;          // of the head, where it is smoothed, else null; and where its means lie
  float *mean;
  uint32_t *found; // words of the pieces of the head, where there are such
  int32_t piece, rows, rowsOfHead, piecesOfHead;
  int32_t settledAt; // what the second counter of the head is when its largest magnitude is known
  int32_t isOfValues;
  int32_t lastOfHeads; // the highest number of a piece of the heads that are numbered in turn with this one
};
// Where blocks of rows have scales of their own, `head` is one of these; and, where it is smoothed, of the head that it lies in:
// what its pieces are counted by, where what blocks find of columns lies, and the counters of its first block.
template <class K> struct PiecePlace<K, true> : PiecePlace<K, false> {
  uint32_t *arrivals, *ends, *firstCounters;
  int32_t block, blocks, piecesOfWhole;
};

// Where kernels have scales of blocks of rows: which block of which (batch, head) something with a scale is. Values have one; so
// have heads without rows, without a scale.
template <class K> struct ScaleBlock {
  int32_t pair, block, blocks;
  DEV ScaleBlock(const QuantizedTensor &tensor, int32_t number, bool isOfValues)
      : blocks(blocksOf(tensor, isOfValues)) {
    pair = number / blocks;
    block = number - pair * blocks;
  }
  DEV static int32_t blocksOf(const QuantizedTensor &tensor, bool isOfValues) {
    return isOfValues ? 1 : max((tensor.rows + K::kScaleRows - 1) / K::kScaleRows, 1);
  }
  DEV int64_t firstRow() const { return static_cast<int64_t>(block) * K::kScaleRows; }
  DEV int64_t endRow(const QuantizedTensor &tensor) const {
    return block + 1 == blocks ? tensor.rows : firstRow() + K::kScaleRows;
  }
};

// Smoothed blocks wait for the means of their head: for all its pieces.
template <class K>
DEV void settleTogether(const QuantizeParams<K> &p, const QuantizedTensor &tensor, const ScaleBlock<K> &block,
                        PiecePlace<K> &place) {
  const QuantizedTensor &values = p.tensors[2];
  const int32_t heads = values.firstHead + p.batch * values.heads; // all that have scales
  place.arrivals = p.counters + quantize::kWordsOfTicket + (heads + block.pair) * quantize::kWordsOfHead;
  place.ends = p.ends + static_cast<int64_t>(block.pair) * block.blocks * (K::kHeadDim * quantize::kWordsOfEnds);
  place.firstCounters = place.counters - block.block * quantize::kWordsOfHead;
  place.block = block.block, place.blocks = block.blocks;
  place.piecesOfWhole = place.settledAt = block.blocks * tensor.piecesOfHead;
  const int32_t last = (block.pair + 1) * block.blocks - 1, all = p.batch * tensor.heads * block.blocks;
  place.lastOfHeads = tensor.firstPiece + min((last / K::kHeads + 1) * K::kHeads, all) * tensor.piecesOfHead - 1;
}

template <class K> DEV PiecePlace<K> placeOf(const QuantizeParams<K> &p, int32_t number) {
  PiecePlace<K> place = {};
  if (number < 0 || number >= p.pieces)
    return place;
  const int32_t which = (number >= p.tensors[1].firstPiece) + (number >= p.tensors[2].firstPiece);
  const QuantizedTensor &tensor = p.tensors[which];
  const int32_t ofTensor = number - tensor.firstPiece, rowsOfPiece = which == 2 ? K::kPieceRowsV : K::kPieceRowsQK;
  const int32_t group = ofTensor / (tensor.piecesOfHead * K::kHeads);
  const int32_t firstPair = group * K::kHeads, inGroup = ofTensor - firstPair * tensor.piecesOfHead;
  int32_t pairs = p.batch * tensor.heads;
  if constexpr (K::kScaleRows > 0)
    pairs *= ScaleBlock<K>::blocksOf(tensor, which == 2);
  const int32_t width = K::kHeads == 1 ? 1 : min(K::kHeads, pairs - firstPair), piece = inGroup / width;
  const int32_t pair = firstPair + inGroup - piece * width;
  int32_t owner = pair; // the (batch, head)
  if constexpr (K::kScaleRows > 0)
    owner = ScaleBlock<K>(tensor, pair, which == 2).pair;
  const int64_t batch = owner / tensor.heads, head = owner - batch * tensor.heads;
  int64_t row = static_cast<int64_t>(piece) * rowsOfPiece;
  if constexpr (K::kScaleRows > 0)
    row += ScaleBlock<K>(tensor, pair, which == 2).firstRow();
  place.from =
      static_cast<const char *>(tensor.from) +
      (batch * tensor.fromStride[0] + row * tensor.fromStride[1] + head * tensor.fromStride[2]) * K::kElementBytes;
  place.to = static_cast<char *>(tensor.to) + batch * tensor.toStride[0] + row * tensor.toStride[1] +
             head * tensor.toStride[2];
  if constexpr (K::kKeyMajorValues > 0)
    if (which == 2)
      place.to += row - row * tensor.toStride[1];
  place.fromBytes = tensor.fromStride[1] * K::kElementBytes;
  place.toBytes = tensor.toStride[1];
  place.descale = piece == 0 ? tensor.descale + pair : nullptr;
  place.counters = p.counters + quantize::kWordsOfTicket + (tensor.firstHead + pair) * quantize::kWordsOfHead;
  place.found = p.found + tensor.firstPiece + static_cast<int64_t>(pair) * tensor.piecesOfHead;
  place.piece = piece;
  place.rows = static_cast<int32_t>(min(static_cast<int64_t>(rowsOfPiece), tensor.rows - row));
  if constexpr (K::kScaleRows > 0) {
    place.rows = static_cast<int32_t>(
        min(static_cast<int64_t>(place.rows), ScaleBlock<K>(tensor, pair, which == 2).endRow(tensor) - row));
    place.descale = tensor.rows > 0 || which == 2 ? place.descale : nullptr;
  }
  place.rowsOfHead = tensor.rows;
  place.piecesOfHead = tensor.piecesOfHead;
  place.settledAt = tensor.piecesOfHead;
  place.isOfValues = which == 2;
  place.lastOfHeads = tensor.firstPiece + (firstPair + width) * tensor.piecesOfHead - 1;
  if (which == 1 && p.kMean) {
    place.columns = p.columns + static_cast<int64_t>(owner) * (K::kHeadDim * quantize::kWordsOfColumn);
    place.mean = p.kMean + static_cast<int64_t>(owner) * K::kHeadDim;
    if constexpr (K::kScaleRows > 0)
      settleTogether(p, tensor, ScaleBlock<K>(tensor, pair, false), place);
    place.settledAt += 1;
  }
  return place;
}

} // namespace heddle
