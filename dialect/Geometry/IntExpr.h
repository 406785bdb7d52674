// Owns the expressions in which pieces and ranges are written: one definition that the host evaluates
// (64 bit), that counts are summed over (Sweep.h), and that codegen/Schedule turns into arith (32 bit).
// Nodes are immutable and shared; construction folds constants and drops repeated operands of min and max.
#pragma once

#include "runtime/Core/Positions.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace heddle::attn {

/// Sums of two positions of one call fit the 32 bits of device code, and a size beyond means "everything".
constexpr int64_t kFarthest = kFarthestPosition;

/// What an expression may refer to. `index` numbers parameters and cells, and is 0 for the rest.
struct Symbol {
  enum Kind : uint8_t {
    Batch,
    Head,
    Heads,
    SeqlenQ,
    SeqlenK,
    QOrigin,
    KOrigin,
    Parameter,  ///< run-time size `index` of the pattern
    TileFirst,  ///< position of the first row of the tile
    TileLast,   ///< position of the last existing row of the tile
    Block,      ///< columns per column tile
    Cell,       ///< index of a segment, numbered by the analysis
    Column,     ///< number of a column in the branch's class
    ListedCell, ///< number of a cell that a list names
    /// argument `index` of the pattern, a tensor of i32: what an Entry, a Search or a list reads; as a number its index
    Tensor
  };
  Kind kind;
  unsigned index = 0;
  bool operator==(const Symbol &other) const { return kind == other.kind && index == other.index; }
};

class IntExpr {
public:
  /// Entry: number operands[0] of a tensor. Search: the number of the last of the first operands[1] entries of a
  /// tensor, which ascend, that is not above operands[0]; 0 if there is none. Cut: operands[0], which 32 bits need not
  /// hold, between -kFarthest - 1 and kFarthest: as a bound of positions the same.
  enum Op : uint8_t {
    Constant,
    Symbolic,
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
    Select,
    Less,
    Equal,
    And,
    Entry,
    Search,
    Cut
  };
  struct Node;

  /// The absent expression: an unbounded end of an interval.
  IntExpr() = default;
  IntExpr(int64_t value);
  IntExpr(Symbol symbol);

  explicit operator bool() const { return node != nullptr; }
  const Node *get() const { return node.get(); }
  std::optional<int64_t> constant() const;
  /// Structural equality.
  bool operator==(const IntExpr &other) const;
  bool operator!=(const IntExpr &other) const { return !(*this == other); }
  /// True if any symbol of this kind occurs.
  bool dependsOn(Symbol::Kind kind) const;
  /// True if a tensor is read.
  bool readsTensors() const;

  static IntExpr make(Op op, IntExpr a, IntExpr b, IntExpr c = {});
  /// An Entry or a Search.
  static IntExpr read(Op op, unsigned argument, IntExpr a, IntExpr b = {});

private:
  std::shared_ptr<const Node> node;
};

struct IntExpr::Node {
  Op op;
  int64_t value = 0; ///< of a Constant
  Symbol symbol{};   ///< of a Symbolic; of an Entry and a Search the Tensor
  IntExpr operands[3];
};

IntExpr operator+(IntExpr a, IntExpr b);
IntExpr operator-(IntExpr a, IntExpr b);
IntExpr operator*(IntExpr a, IntExpr b);
/// Rounded toward minus infinity; the divisor is positive.
IntExpr floorDiv(IntExpr a, IntExpr b);
IntExpr ceilDiv(IntExpr a, IntExpr b);
/// In [0, b); the divisor is positive.
IntExpr mod(IntExpr a, IntExpr b);
/// An absent operand is no bound: the other one is the result.
IntExpr min(IntExpr a, IntExpr b);
IntExpr max(IntExpr a, IntExpr b);
IntExpr select(IntExpr condition, IntExpr a, IntExpr b);
/// A bound of positions or a number of them; sums, differences and products right below it are made in 64 bits.
IntExpr cut(IntExpr a);
/// Conditions are 0 or 1. An absent side of `lessEqual` is unbounded: true.
IntExpr less(IntExpr a, IntExpr b);
IntExpr lessEqual(IntExpr a, IntExpr b);
IntExpr equal(IntExpr a, IntExpr b);
IntExpr both(IntExpr a, IntExpr b);

/// Of the i32 tensor that is this argument of the pattern. The index is one of the tensor's, `count` at most its
/// length.
IntExpr entry(unsigned argument, IntExpr index);
IntExpr search(unsigned argument, IntExpr value, IntExpr count);

inline IntExpr symbol(Symbol::Kind kind, unsigned index = 0) { return IntExpr(Symbol{kind, index}); }

} // namespace heddle::attn
