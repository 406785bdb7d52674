//===- LookupRank.h - which of two winners answers a query better -----------===//
// Owns the order of lookups within one store and between several. Internal to runtime/Store.
#ifndef HEDDLE_RUNTIME_STORE_LOOKUPRANK_H
#define HEDDLE_RUNTIME_STORE_LOOKUPRANK_H

#include "runtime/Store/Store.h"

#include <tuple>

namespace heddle {

// Whether a winner may name this kernel. The pattern is not compared: texts of two digests may give the same code.
bool mayName(const Winner &winner, const KernelRecord &kernel);

// Match, another architecture, distance of the buckets in doublings, untuned: smaller is better. Winners of
// equal rank serve alike.
using LookupRank = std::tuple<MatchKind, bool, int64_t, bool>;
LookupRank lookupRank(const LookupQuery &query, const Winner &winner);

// Of winners of equal rank the one of the nearest problem: smallest distance of the sizes in doublings, then the same
// positions and arguments. Times do not count: they are of different problems.
using LookupOrder = std::tuple<LookupRank, double, bool>;
LookupOrder lookupOrder(const LookupQuery &query, const Winner &winner);

} // namespace heddle

#endif
