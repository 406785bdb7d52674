//===- CellList.h - key cells that a query cell names -----------*- C++ -*-===//
// Owns what the analysis and the generated code know of a list: a rule that gives, for the number of a query's cell,
// the numbers of key cells. The host asks it for whole lists; generated code calls functions by the rule's name, which
// exist for the host (hostFunctions) and for devices (a file of codegen/Skeletons).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_CELLLIST_H
#define HEDDLE_DIALECT_GEOMETRY_CELLLIST_H

#include "dialect/Geometry/IntExpr.h"
#include "dialect/Geometry/TensorData.h"

#include <cstdint>
#include <string>
#include <vector>

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

} // namespace heddle::attn

#endif
