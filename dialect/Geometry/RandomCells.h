//===- RandomCells.h - keyed permutations of cells --------------*- C++ -*-===//
// Owns the lists of attn.random on the host: cell q names pi_t(q), t < min(count, extent), where pi_t is a permutation
// of [0, extent) that follows from (seed, head, t). docs/language.md states it bit by bit; the device has its own text
// of it (codegen/Skeletons/random_cells.cuh) and so has the oracle. Change all of them together, or none.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_RANDOMCELLS_H
#define HEDDLE_DIALECT_GEOMETRY_RANDOMCELLS_H

#include "dialect/Geometry/CellList.h"

#include <memory>

namespace heddle::attn {

/// One permutation of [0, extent), extent >= 1.
class KeyedPermutation {
public:
  /// `head` is 0 for permutations that all heads share, else 1 + the head.
  KeyedPermutation(uint32_t seed, uint32_t head, uint32_t index, uint32_t extent);
  /// Of a cell in [0, extent), in which the results lie.
  uint32_t image(uint32_t cell) const;
  uint32_t preimage(uint32_t cell) const;

private:
  uint32_t round(unsigned number, uint32_t half) const;
  uint32_t encrypt(uint32_t cell) const;
  uint32_t decrypt(uint32_t cell) const;

  uint32_t key, extent, lowBits, lowMask, highMask;
};

/// Arguments: count, seed, head (as above), extent.
std::shared_ptr<const ListRule> randomCells();

/// What generated code calls on the host (ListCalls.h).
int32_t randomCellsNext(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t from);
int32_t randomCellsTransposedNext(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t from);
bool randomCellsHas(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t cell);
int32_t randomCellsLength(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row);
int32_t randomCellsEntry(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t index);

} // namespace heddle::attn

#endif
