//===- QueryTile.h - one query tile on the CPU ------------------------------===//
// Owns the work of one tile of rows: load q, walk the key ranges of every branch under one online
// softmax, write out and lse. One worker belongs to one thread and reuses its buffers.
#pragma once

#include "codegen/Cpu/CpuCall.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Cpu/TileMath.h"
#include <memory>

namespace heddle {

// Where a tile lies: rows rho + rate * (firstQ + m), m < rows, of one head.
struct QueryTilePlace {
  int32_t variant, rate, rho, firstQ, rows;
  int32_t rowIndex(int32_t m) const { return rho + rate * (firstQ + m); }
};

class QueryTileWorker {
public:
  // The call must outlive the worker.
  explicit QueryTileWorker(const CpuCall &call);

  // `context` names the batch element and the head.
  void run(const JitContext &context, const QueryTilePlace &place);

  const CpuAttentionCounts &counts() const { return seen; }

private:
  // Floats with the alignment of a cache line.
  struct alignas(64) Line {
    float values[16];
  };
  struct Buffer {
    std::vector<Line> lines;
    void resize(int64_t floats) { lines.resize((floats + 15) / 16); }
    float *data() { return lines.front().values; }
  };
  // The key class of one branch for the current tile.
  struct KeyClass {
    int32_t branch, rate, residue, count;
  };

  void loadQueries();
  void startSoftmax();
  void loadCarry();
  void loadSink();
  void runBranch(int32_t branch);
  void runKeyTile(const KeyClass &keys, int32_t tile, bool isFull);
  void loadKeys(const KeyClass &keys, int32_t first, int32_t count);
  void setAsideUnlessFinite(int32_t key);
  void addKeysSetAside();
  void changeScores(const KeyClass &keys, int32_t first, int32_t count);
  void maskScores(const KeyClass &keys, int32_t first, int32_t count);
  int64_t numberOfRow(int64_t index) const; // in arrays of [batch, heads, rows]
  void writeRows();

  const JitPattern &pattern;
  const CpuCall &call;
  const TileMath &math;
  const CpuStrides qStride, kStride, vStride, outStride;
  int32_t lanes; // blockM rounded up to whole vectors
  JitContext context;
  QueryTilePlace place = {};
  int32_t firstPosition = 0, lastPosition = 0;
  Buffer queries;      // [headDim][lanes], times scale * log2(e); times scale if a chain changes scores
  Buffer keys, values; // [blockN][headDim], [blockN][valueDim]
  Buffer scores;       // [blockN][lanes]
  Buffer output;       // [valueDim][lanes]
  Buffer rowMax, rowSum, rescale, row;
  std::vector<uint8_t> keep;
  std::vector<int32_t> keysSetAside; // of the tile, those with values that are not finite: these are zeros in `values`
  std::vector<float> valuesSetAside; // [keysSetAside][valueDim], zeros for the finite ones
  CpuAttentionCounts seen;
};

} // namespace heddle
