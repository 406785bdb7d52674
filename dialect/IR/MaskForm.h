// Owns the answers of mask ops to those who write masks anew or take them apart (dialect/Transforms): how a mask is
// made of its operands, the coordinates of a pullback, a leaf as a set over half planes and intervals. No such code
// knows ops by name, so an op that does not answer is refused when its dialect is loaded.
#pragma once

#include "dialect/Geometry/IntExpr.h"

#include "mlir/IR/Operation.h"

#include <string>

namespace heddle::attn {

enum class Axis : uint32_t;

enum class MaskForm : uint8_t {
  Unanswered,
  Leaf,    ///< made of no mask
  All,     ///< what every operand keeps
  Any,     ///< what any operand keeps
  Inverse, ///< what its one operand does not keep
  ByHeads, ///< an operand for each group of heads
  Pullback ///< its first operand, in coordinates of its own: a PullbackOpInterface
};

/// The form of the op that gives the mask.
MaskForm formOf(mlir::Operation *op);

/// Part of the verifier of every mask op: its operands are those of its form.
llvm::LogicalResult verifyForm(mlir::Operation *op);

/// Has every op of the dialects that are loaded, and of those that will be, asked for its form.
void refuseUnansweredForms(mlir::MLIRContext *context);

/// sign * argument + constant; a literal has sign 0.
struct SizeBound {
  int sign = 0;
  unsigned argument = 0;
  int64_t constant = 0;

  bool isLiteral() const { return sign == 0; }
  SizeBound negatedLess(int64_t step) const { return {-sign, argument, -constant - step}; }
  std::string key() const;
};

/// Coordinates x with x % rate == at.
struct ResidueClass {
  int64_t rate = 1;
  std::optional<int64_t> at; ///< none: it depends on the head, or
  bool isAny = false;        ///< query and key are in one class, whichever

  bool isKnown() const { return at || isAny; }
  /// Every pair that is in this one is in the other, if both are classes of one kind of op.
  bool isFiner(const ResidueClass &other) const;
  bool neverMeets(const ResidueClass &other) const;
};

/// Coordinates that a pullback makes of those around it.
struct PullbackPlace {
  bool isIdentity = false;          ///< they are those around it
  bool isGuarded = true;            ///< some pairs around it have none
  std::optional<int64_t> stride;    ///< k - q around it is that in it, times this; none: one does not tell the other
  std::optional<SizeBound> segment; ///< both axes are cut from 0 on into pieces of this length, and a pair lies in one
  IntExpr blockSize = {};           ///< they number blocks of so many positions; absent: they number none

  /// By how much the distance of neighbouring coordinates is multiplied, as far as that is known.
  int64_t step() const;
};

/// Tensors among the arguments of the pattern, as DocumentTensors.h says.
struct DocumentOperands {
  mlir::Value offsetsQ = {}, offsetsK = {}, used = {};
};

/// Builds the set that a leaf keeps, in the coordinates of its place, from sets with known laws.
class MaskTerms {
public:
  using Set = uint32_t;
  virtual ~MaskTerms() = default;

  virtual Set all() = 0;
  virtual Set both(Set a, Set b) = 0;
  virtual Set either(Set a, Set b) = 0;
  virtual Set complement(Set a) = 0;
  /// k - q <= bound
  virtual Set upTo(SizeBound bound) = 0;
  /// k <= q or k < length
  virtual Set prefix(const SizeBound &length) = 0;
  /// 0 <= x < size on the axis
  virtual Set first(Axis axis, const SizeBound &size) = 0;
  /// x among the last `size` coordinates of the axis
  virtual Set last(Axis axis, const SizeBound &size) = 0;
  /// x in the leaf's residues on the axis
  virtual Set residue(Axis axis) = 0;
  /// The leaf, of which nothing is known but its text. Operands of `or` are written in the order of their ranks.
  virtual Set unknown(unsigned rank = kLastRank) = 0;

  static constexpr unsigned kLastRank = 6;
};

} // namespace heddle::attn
