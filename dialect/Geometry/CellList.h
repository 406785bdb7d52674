// Owns what the analysis and the generated code know of a list: a rule that gives, for the number of a query's cell,
// the numbers of key cells. The host asks it for whole lists; generated code calls functions by the rule's name, which
// exist for the host (hostFunctions) and for devices (a file of codegen/Skeletons).
#pragma once

#include "dialect/Geometry/IntExpr.h"
#include "dialect/Geometry/TensorData.h"

#include <cstdint>
#include <string>
#include <vector>
#include <memory>

namespace heddle::attn {

/// Stands for a cell where there is none, in generated code.
inline constexpr int32_t kNoCell = 0x7fffffff;

/// Arguments are the values of the expressions that come with the rule in a piece. Immutable.
class ListRule {
public:
  virtual ~ListRule();

  /// Rules of one name are the same rule. Generated code calls `<name>_next`, `<name>_has`, `<name>_length` and
  /// `<name>_entry` (ListCalls.h).
  virtual const char *name() const = 0;
  /// The file of codegen/Skeletons with the device functions, which are called `heddle::<name>_next`, ...; null: the
  /// module of pattern functions defines them itself (ListCalls.cpp).
  virtual const char *deviceFile() const = 0;

  /// The rule of the query cells that name a key cell; `arguments` become its own. Null of a rule that no piece of a
  /// mask has.
  virtual std::shared_ptr<const ListRule> transposed(std::vector<IntExpr> &arguments) const { return nullptr; }

  /// Ascending, each once; no bound is put on the numbers. An argument that stands for a tensor is its number among
  /// `tensors`, which holds it.
  virtual std::vector<int64_t> cells(const std::vector<int64_t> &arguments, int64_t row,
                                     const TensorData *tensors = nullptr) const = 0;
  /// False: all query cells have the same list, and `row` may be any number.
  virtual bool dependsOnRow() const { return true; }
  /// A warp goes through all entries to find the next one, unless it has memory to note them in (cell_bits.cuh).
  virtual bool isSearched() const { return false; }
  /// True: the list of query cell n is that of cell 0, moved by n.
  virtual bool movesWithRow() const { return false; }
  /// No list is longer.
  virtual int64_t longest(const std::vector<int64_t> &arguments, const TensorData *tensors = nullptr) const = 0;
  /// What is kept, for cells that are called `cells`: "3 random blocks for each of the query's, by seed 7".
  virtual std::string inWords(const std::vector<int64_t> &arguments, const std::string &cells) const = 0;
};

// Owns the list of the cells of one residue class, the same for every query cell: how tiles find key blocks at a
// stride. Nothing asks it for single pairs, which a mask knows itself. The device's text is
// codegen/Skeletons/Shared/strided_cells.cuh.

/// Arguments: modulus > 0, residue, first, end: the cells c with first <= c < end and c = residue mod modulus.
std::shared_ptr<const ListRule> stridedCells();

/// What generated code calls on the host (ListCalls.h).
int32_t stridedCellsNext(int32_t modulus, int32_t residue, int32_t first, int32_t end, int32_t row, int32_t from);

// Owns the list of the cells that lie a multiple of a step from a query cell, on both sides of it: blocks that are
// thinned out. Nothing asks it for single pairs, which a mask knows itself. The device's text is
// codegen/Skeletons/Shared/near_cells.cuh.

/// Arguments: step > 0, first, last: the cells row + m * step with first <= m <= last.
std::shared_ptr<const ListRule> nearCells();

/// What generated code calls on the host (ListCalls.h).
int32_t nearCellsNext(int32_t step, int32_t first, int32_t last, int32_t row, int32_t from);

// Owns the lists of attn.csr on the host: row r of list l names entries offsets[l * rows + r] to offsets[l * rows + r +
// 1] - 1 of the indices, where `rows` is one more than there are rows. Generated code has its own text
// (dialect/IR/CsrFunctions.cpp).

inline constexpr const char *kCsrCells = "csr_cells", *kCsrCellsTransposed = "csr_cells_transposed";

/// Arguments: the tensors of offsets and of indices, the number of the list, offsets of a list, indices in all. What
/// lies beyond the tensors is in no row.
std::shared_ptr<const ListRule> csrCells();

// Owns the lists of attn.random on the host: cell q names pi_t(q), t < min(count, extent), where pi_t is a permutation
// of [0, extent) that follows from (seed, head, t). docs/language.md states it bit by bit; the device has its own text
// of it (codegen/Skeletons/Shared/random_cells.cuh) and so has the oracle. Change all of them together, or none.

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
