// Owns the work of one tile of rows: load q, walk the key ranges of every branch under one online
// softmax, write out and lse. One worker belongs to one thread and reuses its buffers.
#pragma once

#include "codegen/Cpu/CpuAttention.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Cpu/LaneBuffer.h"
#include "codegen/Cpu/TileColumns.h"
#include "codegen/Cpu/TileWalk.h"

namespace heddle {

class QueryTileWorker {
public:
  // The call must outlive the worker.
  explicit QueryTileWorker(const CpuCall &call);

  void run(const TilePlace &place);

  const CpuAttentionCounts &counts() const { return seen; }

private:
  void loadQueries();
  void startSoftmax();
  void loadCarry();
  void loadSink();
  void runBranch(int32_t branch);
  void runKeyTile(const Columns &keys, int32_t first, bool isFull);
  void loadKeys(const Columns &keys, int32_t first, int32_t count);
  void changeScores(const Columns &keys, int32_t first, int32_t count);
  void maskScores(const Columns &keys, int32_t first, int32_t count);
  int32_t kvHead() const;
  bool hasKeyBlocks() const { return call.elements.scaleRows > 0; } // with scales of their own
  float descaleOfKey(int64_t index) const;
  int64_t numberOfRow(int64_t index) const; // in arrays of [batch, heads, rows]
  void writeRows();

  const JitPattern &pattern;
  const CpuCall &call;
  const TileMath &math;
  const CpuStrides qStride, kStride, vStride, outStride;
  int32_t lanes; // blockM rounded up to whole vectors
  JitContext context;
  TilePlace place = {};
  int32_t variant = 0;
  int32_t firstPosition = 0, lastPosition = 0;
  LaneBuffer queries; // [headDim][lanes], times scale * log2(e); times scale if a chain changes scores
  TileColumns keys, values;
  LaneBuffer scores; // [blockN][lanes]
  LaneBuffer output; // [valueDim][lanes]
  LaneBuffer rowMax, rowSum, rescale, row;
  std::vector<uint8_t> keep;
  CpuAttentionCounts seen;
};

} // namespace heddle
