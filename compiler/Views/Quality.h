// Owns the numbers of `heddle explain --quality`. The reference is attention with the same scores over all keys, or,
// for a pattern that keeps no key behind its query, over all keys up to the query. All of batch element 0.
#pragma once

#include "compiler/Io/AttentionInputs.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Views/KeptPairs.h"
#include "compiler/Views/KeptRows.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::views {

// Owns the question how many layers of one pattern it takes until every position has heard of every other one. A layer
// hands a position what the positions that it attends to know; what it knows itself stays (the residual connection).

/// sources[i]: the nodes that node i attends to, each < sources.size().
using AttentionGraph = std::vector<std::vector<int32_t>>;

struct ClosureDepth {
  std::optional<int64_t> layers; ///< until all wanted pairs are connected, at least 1; nothing: they never are
  int64_t settledAfter = 0;      ///< layers after which nothing new is connected
  double connected = 0;          ///< share of the wanted pairs that are connected in the end; 1 for no pairs
};

/// Wanted are all pairs, or with `isCausal` those whose source is not later.
ClosureDepth closureDepth(const AttentionGraph &graph, bool isCausal);

struct QualityRequest {
  attn::ProblemSizes sizes;
  attn::TileShape tile;
  const AttentionInputs *inputs = nullptr; ///< never null; of these sizes
  uint64_t seed = 0;                       ///< of the sample of rows
  Operands operands = {};                  ///< every tensor that the pattern reads
  std::optional<int64_t> mostRows = {};    ///< to look at; none: all of short sequences, else a sample
  PairEffort pairs = {};                   ///< of the depth; its progress is that of rows too
};

/// Over the rows that were looked at. Rows before the first key of a causal reference have none and do not count.
struct RowQuality {
  bool isCausal = false;
  int64_t rows = 0, rowsInAll = 0;    ///< looked at; of all heads
  int64_t emptyRows = 0;              ///< with keys in the reference and none in the pattern
  double leastMass = 1, meanMass = 1; ///< reference weights of the kept keys, summed over a row
  int64_t leastHead = 0, leastRow = 0;
  double relativeError = 0; ///< ||out - reference|| / ||reference||, Frobenius; the pattern's weights sum to 1
  double maxError = 0;      ///< of one element
};

struct DepthQuality {
  ClosureDepth closure;
  int64_t nodeSize = 1; ///< positions in a node; more than 1: the pattern itself needs at least as many layers
  std::string whyNot;   ///< there is no depth; empty: there is one
  int64_t rowsRead = 0; ///< of heads that differ
};

/// Visited key tiles of query tiles, over all heads.
struct BalanceQuality {
  int64_t most = 0, queryTiles = 0;
  int64_t visited = 0;   ///< by all of them
  int64_t tilesSeen = 0; ///< query tiles of heads that differ
  double mean = 0;
  double imbalance() const { return mean > 0 ? double(most) / mean : 1; }
  std::string whyNot;
};

struct Quality {
  RowQuality rows;
  DepthQuality depth;
  BalanceQuality balance;
};

inline constexpr int64_t kMostPairsOfAllRows = int64_t(1) << 22; ///< of all heads; beyond them rows are sampled
inline constexpr int64_t kMostSampledRows = 256, kLeastSampledRows = 8;
inline constexpr int64_t kMostSampledProducts = int64_t(1) << 31; ///< of numbers, for the sampled rows together
/// of the graph of a layer; longer sequences are cut into blocks
inline constexpr int64_t kMostNodes = 2048;
inline constexpr int64_t kMostInputElements = int64_t(1) << 27; ///< of q, k or v

/// unsupported: a predicate has no form on this machine, or the inputs are too large.
Result<Quality> measureQuality(const PatternFile &file, const QualityRequest &request);
/// Its part that needs weights.
RowQuality measureRows(KeptRows &kept, const QualityRequest &request);

/// invalidArgument if q, k or v of these sizes had more than kMostInputElements elements.
Status checkQualitySizes(const AttentionSizes &sizes);

/// Lines under the explanation. `inputs` says what the tensors were, `seed` is that of the request.
std::string qualityText(const std::string &inputs, uint64_t seed, const Quality &quality);

} // namespace heddle::views
