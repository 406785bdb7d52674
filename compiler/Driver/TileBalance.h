//===- TileBalance.h - whether query tiles cost alike ------------*- C++ -*-===//
// Owns the question that the order of work items depends on: equal tiles may be dealt out in any order, others want
// the longest first.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_TILEBALANCE_H
#define HEDDLE_COMPILER_DRIVER_TILEBALANCE_H

namespace heddle {

class PatternFile;

/// True if in a long sequence, with the sizes' defaults, the query tiles of every head visit about as many key tiles as
/// each other, but for shorter ones at the ends. False if a size has no default.
bool hasEqualTiles(const PatternFile &file);

} // namespace heddle

#endif
