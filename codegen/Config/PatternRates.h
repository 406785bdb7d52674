// The strides and the rule for positions that a pattern fixes before run time, apart from the generated
// functions. Plain data.
#pragma once

#include "runtime/Core/ArgumentBounds.h"
#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The strides of one head group: rows are processed in `queryRate` residue classes, the keys of
/// branch b in `keyRates[b]` of them.
struct VariantRates {
  int64_t queryRate = 1;
  std::vector<int64_t> keyRates = {1};
};

/// What a kernel of one pass of a pattern differs in from a kernel of the whole pattern.
struct PassRates {
  std::vector<VariantRates> variants = {VariantRates()};
  int64_t grain = 1, bandedGrain = 1; ///< as in PatternRates
};

/// What defaults depend on, no part of the function: in a long sequence, with the sizes' defaults. Nothing is true if a
/// size has no default.
struct TileBalance {
  /// query tiles visit about as many key tiles as each other, but for shorter ones at the ends
  bool hasEqualTiles = false;
  bool hasFewTiles = false;  ///< every query tile visits at most one key tile in eight
  bool hasManyTiles = false; ///< every query tile inside visits more
  bool hasWholeTiles = true; ///< 64 queries keep some tiles of 64 keys whole
  bool hasLongRows = false;  ///< the first or the last query tile visits many times as many key tiles as those inside
  bool longRowsAreLast = false;  ///< if hasLongRows: the last query tile visits more than the first
  bool firstKeysAreLong = false; ///< the first key tile is visited by many times as many query tiles as those inside
  bool hasOwnKeys = false;       ///< of what large query tiles visit, their parts need much less than all
  bool gainsFromPasses = false;  ///< one kernel visits many times the key tiles that the passes visit together
  int64_t queries = 0;           ///< of a head, in the calls to come; 0: any number
};

/// A tensor that the pattern reads.
struct OperandSlot {
  int64_t argument = 0;   ///< its number among the arguments of the pattern: that of its pointer and of its length
  bool hasLength = false; ///< the kernel needs the length
};

/// An argument of the pattern that scores, or the sink, have a derivative by.
struct GradientSlot {
  int64_t argument = 0;
  LaunchExpr elements = 1;
  bool isOfScores = false, isOfSink = false;
  bool hasHeads = false; ///< every head has elements of its own
  bool hasPairs = false; ///< every pair reads an element of its own, once
  bool isShared = true;  ///< several pairs of a head read one element
};

/// What kernels know of a whole pattern.
struct PatternRates {
  std::vector<VariantRates> variants = {VariantRates()};
  /// of walks over key tiles, axes exchanged: `queryRate` is that of keys, `keyRates` are those of queries
  std::vector<VariantRates> transposed = {VariantRates()};
  bool isDetached = false;                  ///< gradients of out do not go through the weights of branches
  int64_t paramCount = 0;                   ///< arguments of the pattern
  std::vector<OperandSlot> operands = {};   ///< those of them that are tensors, ascending
  std::vector<GradientSlot> gradients = {}; ///< those of them that have gradients, ascending
  std::vector<ArgumentBound> bounds = {};   ///< of the arguments, for plans
  QOriginRule qOrigin = QOriginRule::start;
  /// of a pattern of parts: arguments where queries and keys of the whole end, and columns
  std::vector<int64_t> wholes = {};
  /// every branch keeps or drops whole squares of so many rows and keys of a class; 1: none are known
  int64_t grain = 1;
  int64_t bandedGrain = 1; ///< likewise, but for a band of positions that every branch has a function for
  int64_t transposedGrain = 1, transposedBandedGrain = 1; ///< of what walks over key tiles visit
  /// of keys and of queries, where the key tiles that visit a query tile follow each other in one class; else 0
  int64_t consecutiveRate = 0;
  bool hasLists = false;              ///< the keys of a piece are those of a list
  bool searchesLists = false;         ///< ranges are found by going through lists
  bool hasScores = false;             ///< a chain of the pattern changes scores
  TileBalance balance = {};           ///< hints for defaults, no part of the function
  std::vector<PassRates> passes = {}; ///< of the pattern in the order of their launches; none, or at least two
  std::string whyOnePass = {};        ///< why there are none
  /// the rows lie in documents, and the pattern has functions that say where they begin
  bool hasDocuments = false;
  LaunchExpr documents = 1;        ///< how many documents
  std::string whyNoDocuments = {}; ///< why it has none
  bool keepsByHead = true;         ///< false: all heads keep the same pairs
  std::string whyNoPages = {};     ///< why sequences of different lengths cannot share its tensors; empty: they can

  /// Key rates per variant; the same for all variants.
  int64_t branchCount() const { return variants.empty() ? 0 : static_cast<int64_t>(variants.front().keyRates.size()); }
};

} // namespace heddle
