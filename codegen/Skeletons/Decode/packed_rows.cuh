// The rows of a unit: which query of which head each of them is.
#pragma once

#include "Decode/decode_lines.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/range_walk.cuh"

namespace heddle {

template <class K> struct Unit : KeyShare<K> {
  using Params = ParamsOf<K>;

  Sequence<K> sequence;
  int32_t variant, rate, rho;
  int32_t firstHead, kvHead, heads; // of the rows, side by side
  int32_t firstRow, rows;           // by their number in the class: packed rows, those that there are
  bool isTall;                      // each warp has 16 rows of its own

  DEV Unit(const Params &p, const Line<K> &line, int32_t number)
      : KeyShare<K>(line), sequence(line.sequence), variant(line.variant()), rate(line.rate()),
        heads(headsOfUnit<K>(p)) {
    const int32_t rest = quickQuotient(number, line.tilesOfClass), tile = number - rest * line.tilesOfClass;
    const int32_t classes = min(rate, max(line.sequence.rows, 1)), ofClass = quickQuotient(rest, classes);
    rho = rest - ofClass * classes;
    kvHead = K::kPacksHeads && !hasTableOfHead(p) ? ofClass : line.head / p.sharingHeads;
    firstHead = K::kPacksHeads ? kvHead * heads : line.head;
    firstRow = tile * line.rowsOfUnit;
    rows = line.rowsOfClass(rho) * heads;
    isTall = line.rowsOfUnit > decode::kRows;
  }

  // All rows of a sequence that share a kv head, where patterns have one lattice.
  DEV Unit(const Params &p, const Sequence<K> &sequence, int32_t kvHead)
      : KeyShare<K>(), sequence(sequence), variant(0), rate(1), rho(0), firstHead(kvHead * p.sharingHeads),
        kvHead(kvHead), heads(p.sharingHeads), firstRow(0), rows(sequence.rows * p.sharingHeads), isTall(false) {}

  DEV bool hasRows() const { return firstRow < rows; }
  DEV int32_t scalePair(const Params &p) const { return sequence.number * p.kvHeads + kvHead; } // of KeyScales
  DEV int32_t groups() const { return isTall ? min(ceilDiv(rows - firstRow, decode::kRows), K::kWarps) : 1; }
  // Rows 8 and on of a group.
  DEV bool hasUpperHalf(int32_t group) const { return firstRow + group * decode::kRows + 8 < rows; }
  DEV int32_t queryOf(int32_t packed) const { // of one query all rows are its heads
    if (rows <= heads)
      return 0;
    return static_cast<uint32_t>(packed) / static_cast<uint32_t>(heads);
  }
  DEV int32_t indexOf(int32_t packed) const { return rho + rate * queryOf(packed); }
  // What the rows that there are span.
  DEV RowSpan span() const {
    const int32_t last = min(firstRow + (isTall ? K::kWarps : 1) * decode::kRows, rows) - 1;
    return {sequence.qOrigin() + indexOf(firstRow), sequence.qOrigin() + indexOf(last)};
  }
};

// The rows of a lane in its group are number lane / 4, and 8 more.
struct PackedRow {
  bool exists;
  int32_t index, head; // of one that does not exist, those of the last one

  template <class K> DEV PackedRow(const Unit<K> &unit, int32_t number) {
    const int32_t packed = unit.firstRow + number;
    exists = packed < unit.rows;
    const int32_t known = min(packed, unit.rows - 1), query = unit.queryOf(known);
    index = unit.rho + unit.rate * query;
    head = unit.firstHead + (known - query * unit.heads);
  }
};

DEV int32_t rowOfLane(int32_t half) { return ptx::rereadLane() / 4 + 8 * half; }

} // namespace heddle
