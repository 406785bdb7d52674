//===- Attention.h - the cache in pages, and attention over it --------------===//
// One interface, two places: this machine's processors (CpuAttention.cpp, over libheddle) and a GPU (GpuAttention.cpp, over
// libheddle_runtime and stored kernels). Both are heddle's calls of kind "decode": sequences of all lengths, pieces of
// prompts and drafts beside single tokens, in one call for each layer.
//===----------------------------------------------------------------------===//
#pragma once

#include <heddle/heddle.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace server {

namespace api = heddle::api;

// What a query sees: the first tokens, itself and those before it (patterns/streaming.mlir).
struct Reach {
  int64_t first = 4, left = 1023;
};

// Sizes of calls.
struct AttentionShape {
  int64_t layers = 0, heads = 0, kvHeads = 0, headDim = 0;
  int64_t pages = 0, pageSize = 0; // of each layer's cache
  Reach reach;
  int64_t rowSize() const { return (heads + 2 * kvHeads) * headDim; } // elements of q, k and v of a token
  int64_t outSize() const { return heads * headDim; }
};

// The rows of a step. Those of a sequence are its last positions, and are appended to the cache before they are attended.
struct Batch {
  std::vector<int32_t> offsets; // sequences + 1: where rows of each begin
  std::vector<int32_t> lengths; // of each sequence, with its rows
  std::vector<int32_t> table;   // [sequences, maxPages]: page of each pageSize tokens; -1: behind the window
  int32_t maxPages = 1;
  std::vector<int32_t> places; // of each row: page * pageSize + place in the page

  int32_t sequences() const { return int32_t(lengths.size()); }
  int64_t rows() const { return int64_t(places.size()); }
};

// For one thread at a time.
class Attention {
public:
  virtual ~Attention() = default;
  // Before the layers of a step: tables and lengths of all of them. The batch stays as it is until the last layer.
  virtual api::Status begin(const Batch &batch) = 0;
  // qkv: [rows, heads + 2 kv heads, head dim] of the batch; out: [rows, heads, head dim].
  virtual api::Status run(int64_t layer, const float *qkv, float *out) = 0;
  // "the processors" or the GPU's kernel, for people.
  virtual std::string where() const = 0;
};

// The operands of patterns/streaming.mlir.
inline void setReach(api::Arguments &arguments, const Reach &reach) {
  arguments.size(0, reach.first).size(1, reach.left);
}

// threads 0: all processors. UNSUPPORTED where the example was built over libheddle_runtime alone.
api::Result<std::unique_ptr<Attention>> attentionOnProcessors(const AttentionShape &shape, int threads);
// GPU 0; kernels: a package or database that has "streaming" of kind decode for bf16 and this head dim.
api::Result<std::unique_ptr<Attention>> attentionOnGpu(const AttentionShape &shape, const std::string &kernels);

} // namespace server
