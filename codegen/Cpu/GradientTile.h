// Owns the work of one tile of rows: queries, whose gradients come from the keys that they visit, or keys, whose
// gradients come from the queries that visit them, of all heads that share them. Rows lie along lanes, what they visit
// in columns. One worker belongs to one thread and reuses its buffers.
#pragma once

#include "codegen/Cpu/CpuAttention.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Cpu/LaneBuffer.h"
#include "codegen/Cpu/TileColumns.h"
#include "codegen/Cpu/TileItems.h"
#include "codegen/Cpu/TileWalk.h"

namespace heddle {

/// What the softmax of every row says, [batch, heads, seqlen_q].
struct SoftmaxRows {
  std::vector<float> lse;                ///< in base 2; +inf of rows that keep nothing
  std::vector<std::vector<float>> delta; ///< minus the gradient of lse; of each branch, or one
};

class GradientTileWorker {
public:
  enum class Rows { queries, keys };
  /// `call` and `softmax` must outlive the worker. Of queries, deltas of branches are found, and written to `softmax`,
  /// where gradients are detached.
  GradientTileWorker(const CpuCall &call, SoftmaxRows &softmax, Rows rows);

  /// Writes d_q of rows that are queries, d_k and d_v of rows that are keys.
  void run(const TilePlace &place);
  /// Adds to the gradient of an argument, at `sums`, what the pairs of these rows say, which are queries.
  void addToArgument(const TilePlace &place, const CpuCall::ArgumentGradient &of, float *sums);

private:
  enum class Purpose { delta, gradients, argument };
  bool isOfQueries() const { return rows == Rows::queries; }
  const CpuCall &call;
  const JitPattern &pattern;
  const TileMath &math;
  SoftmaxRows &softmax;
  const Rows rows;
  const int32_t lanes; // of a tile of rows, rounded up to whole vectors
  const int32_t block; // columns of a tile
  void loadLanes(Role role, int32_t dim, float factor, float *to);
  void store(Role role, int32_t dim, float factor, LaneBuffer &from);
  void runHead(int32_t head);
  void runBranch(int32_t branch, Purpose purpose);
  void setLaneNumbers(int32_t branch, Purpose purpose);
  /// Leaves weights of a tile of columns, those from `first` on, in `scores`, and what goes before them in `products`.
  void computePairs(const Columns &columns, int32_t first, bool isFull, Purpose purpose);
  void loadColumns(const Columns &columns, int32_t first);
  void changeScores(const Columns &columns, int32_t first, Purpose purpose);
  void maskScores(const Columns &columns, int32_t first);
  void addToGradients(int32_t count);
  void addToSums(int32_t count);
  void addToElements(const Columns &columns, int32_t first);
  void startTile(const TilePlace &where);
  void findDelta(int32_t branch);
  JitKeepLine lineOf(const Columns &columns, int32_t column) const;
  int32_t countOf(const Columns &columns, int32_t first) const { return columns.countFrom(first, block); }
  int64_t numberOfQuery(int64_t index) const; ///< of the head of `context`, in arrays of [batch, heads, seqlen_q]

  JitContext context;
  TilePlace place = {};
  int32_t variant = 0, firstPosition = 0, lastPosition = 0;
  const float queryFactor;                   // of q, as the forward pass has it: scores have the same bits
  LaneBuffer rowScores, rowValues;           // q and d_out, or k and v: [dim][lanes]
  TileColumns columnScores, columnValues;    // k and v, or q and d_out
  LaneBuffer scores, products, slopes;       // [block][lanes]
  LaneBuffer gradientScores, gradientValues; // of rowScores and, of keys, of rowValues
  LaneBuffer lse, delta;                     // of lanes, or of columns
  LaneBuffer weightSum, productSum;          // of lanes, over one branch
  LaneBuffer row;
  std::vector<uint8_t> keep;
  std::vector<int64_t> places; // of elements of the argument
  int argument = -1;           // whose gradient is wanted
  float *argumentSums = nullptr;
};

} // namespace heddle
