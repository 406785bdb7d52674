// Owns the parts of a product of atoms that are one mask, or a few, in a text: bands, edges, boxes, what lies in a
// pullback. Products of a union that differ in one part may have a common text.
#pragma once

#include "dialect/Transforms/MaskAtoms.h"

namespace heddle::attn {

/// Of k - q, in sizes that masks name: -atLeast <= k - q <= atMost, not in [-below, 0], not in [0, above], not in
/// [-hole.first, hole.second].
struct BandUnit {
  std::vector<SizeBound> atLeast, atMost, below, above;
  std::optional<std::pair<SizeBound, SizeBound>> hole;
};

/// From the edges of the axes: First sizes, Last sizes, what First sizes leave out of them.
struct EdgeUnit {
  std::optional<SizeBound> firstQ, lastQ, firstK, lastK, fromQ, fromK;
};

struct MaskUnit {
  enum Kind { Inside, Edges, Band, Leaf };
  Kind kind;
  bool isNegated = false;
  unsigned place = 0;           ///< of what lies inside
  std::vector<Cube> cubes = {}; ///< whose union it is, in that place
  BandUnit band = {};
  EdgeUnit edges = {};
  unsigned atom = 0;    ///< of a leaf
  std::string key = {}; ///< equal for equal units

  /// The order of operands of and, and of or.
  unsigned rankInProduct() const;
  unsigned rankInUnion(const MaskAtoms &atoms) const;
};

using MaskProduct = std::vector<MaskUnit>;

/// The product of atoms as units, seen from a place. Sorted.
MaskProduct productOf(const MaskAtoms &atoms, const Cube &cube, unsigned place);

/// Joins products where one text says both; sorted.
void joinProducts(const MaskAtoms &atoms, std::vector<MaskProduct> &products);

/// The units that all products have, which are taken out of them.
MaskProduct takeCommon(std::vector<MaskProduct> &products);

} // namespace heddle::attn
