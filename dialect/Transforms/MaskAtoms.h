// Owns what masks come down to: half planes on k - q, intervals from an edge of an axis, residue classes and masks
// without a law, each in the coordinates of a place (the pullbacks around it), and what is known of pairs of them.
#pragma once

#include "dialect/IR/Attn.h"
#include "dialect/Transforms/SetFunctions.h"

namespace heddle::attn {

/// Local coordinates: those of the pattern, or what some pullbacks make of them. A guarded place does not hold every
/// pair.
struct MaskPlace {
  mlir::Operation *op = nullptr; ///< the innermost pullback
  PullbackPlace own;             ///< what that says
  ResidueClass residues;
  unsigned parent = 0;
  unsigned base = 0; ///< the innermost place around it, or itself, whose distances do not follow from others
  int64_t scale = 1; ///< steps of the base that k - q moves by here
  std::string key;   ///< equal for equal places, of equal patterns too
};

/// Pairs that lie in the place and
struct MaskAtom {
  enum Kind {
    Place,   ///< nothing more
    UpTo,    ///< k - q <= bound
    Prefix,  ///< attn.prefix of `bound`
    First,   ///< 0 <= x < bound on the axis
    Last,    ///< x among the last `bound` ones of the axis
    Residue, ///< x in the residues of `op` on the axis
    Other    ///< the mask `op`
  };
  Kind kind;
  unsigned place = 0;
  Axis axis = Axis::q;
  SizeBound bound;
  mlir::Operation *op = nullptr;
  unsigned rank = 0; ///< of an Other, in a union (MaskTerms)
  std::string key;   ///< the order of atoms
};

/// Operand of every attn.heads of so many operands.
using HeadChoice = std::map<unsigned, unsigned>;

class MaskAtoms {
public:
  using Set = SetFunctions::Set;

  explicit MaskAtoms(PatternOp pattern) : pattern(pattern), places(1) { places[0].own.isGuarded = false; }

  /// Adds what the mask is made of.
  void collect(mlir::Value mask, const HeadChoice &choice);
  /// After all are collected: sorts them. False: there are too many.
  bool number();
  /// The mask as a function of atoms.
  Set read(mlir::Value mask, const HeadChoice &choice, SetFunctions &functions);
  /// What holds of every pair.
  Set facts(SetFunctions &functions) const;

  const std::vector<MaskAtom> &all() const { return atoms; }
  const MaskPlace &place(unsigned number) const { return places[number]; }
  bool isInside(unsigned place, unsigned outer) const;

private:
  class Leaf;
  struct Reading;
  bool isAtMost(const SizeBound &a, int64_t scaleA, const SizeBound &b, int64_t scaleB) const;

  bool implies(const MaskAtom &a, const MaskAtom &b) const;
  bool impliesHere(const MaskAtom &a, const MaskAtom &b) const;
  bool excludes(const MaskAtom &a, const MaskAtom &b) const;
  Set guardOf(unsigned place, SetFunctions &functions) const;
  unsigned placeOf(PullbackOpInterface op, unsigned parent);

  PatternOp pattern;
  std::vector<MaskPlace> places;
  std::map<std::string, unsigned> placeByKey;
  std::map<std::string, MaskAtom> found;
  std::vector<MaskAtom> atoms;
  std::map<std::string, unsigned> numbers;
};

} // namespace heddle::attn
