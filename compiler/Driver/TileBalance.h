//===- TileBalance.h - whether query tiles cost alike ------------*- C++ -*-===//
// Owns the questions that defaults depend on: equal tiles may be dealt out in any order, others want the longest first;
// where query tiles are short, their ends weigh more than their middle.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_TILEBALANCE_H
#define HEDDLE_COMPILER_DRIVER_TILEBALANCE_H

namespace heddle {

class PatternFile;

/// In a long sequence, with the sizes' defaults. Nothing is true if a size has no default.
struct TileBalance {
  bool hasEqualTiles = false; ///< query tiles visit about as many key tiles as each other, but for shorter ones at the ends
  bool hasFewTiles = false;   ///< every query tile visits at most one key tile in eight
  bool hasLongRows = false;   ///< the first or the last query tile visits many times as many key tiles as those inside
};
TileBalance tileBalance(const PatternFile &file);

} // namespace heddle

#endif
