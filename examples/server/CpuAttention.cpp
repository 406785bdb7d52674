//===- CpuAttention.cpp - attention on this machine's processors ------------===//
// The cache is host memory of fp32; q is read where the model wrote it, between k and v.
//===----------------------------------------------------------------------===//
#include "Attention.h"

#include <heddle/heddle_compiler.h>

#include <algorithm>

namespace server {
namespace {

// patterns/streaming.mlir in short: two spellings of a pattern are the same pattern.
constexpr char kPattern[] = "attn.pattern @streaming(%first: i32, %left: i32) {\n"
                            "  %c = attn.causal\n"
                            "  %w = attn.window [%left, 0]\n"
                            "  %s = attn.cols [%first, 0]\n"
                            "  %past = attn.and %s, %c\n"
                            "  %m = attn.or %w, %past\n"
                            "  attn.softmax union(%m)\n"
                            "}\n";

struct ClosePattern {
  void operator()(heddle_pattern *pattern) const { heddle_pattern_close(pattern); }
};
using Pattern = std::unique_ptr<heddle_pattern, ClosePattern>;

class CpuAttention : public Attention {
public:
  CpuAttention(const AttentionShape &shape, Pattern pattern, int threads)
      : shape(shape), pattern(std::move(pattern)), threads(threads),
        cache(size_t(shape.layers * shape.pages * pageElements() * 2), 0) {}

  api::Status begin(const Batch &step) override {
    batch = &step;
    return {};
  }

  api::Status run(int64_t layer, const float *qkv, float *out) override {
    float *keys = &cache[size_t(layer * shape.pages * pageElements() * 2)], *values = keys + pageElements();
    append(qkv, keys, values);
    const int64_t rows = batch->rows(), row = shape.rowSize(), heads = shape.heads, dim = shape.headDim;
    api::Arguments arguments;
    arguments.q = {const_cast<float *>(qkv), HEDDLE_FP32, 0, {1, rows, heads, dim}, {rows * row, row, dim, 1}};
    arguments.k = inPages(keys), arguments.v = inPages(values);
    arguments.out = api::contiguous(out, HEDDLE_FP32, {1, rows, heads, dim});
    arguments.page_table = batch->table.data(), arguments.seqused_k = batch->lengths.data();
    arguments.cu_seqlens_q = batch->offsets.data();
    arguments.page_size = int32_t(shape.pageSize);
    arguments.sequences = batch->sequences(), arguments.max_pages = batch->maxPages;
    setReach(arguments, shape.reach);
    const heddle_attention_args args = arguments.c();
    return api::Status::of(heddle_cpu_run(pattern.get(), "decode", &args, threads));
  }

  std::string where() const override { return "the processors, fp32"; }

private:
  int64_t tokenElements() const { return shape.kvHeads * shape.headDim; }
  int64_t pageElements() const { return shape.pageSize * tokenElements(); }

  void append(const float *qkv, float *keys, float *values) const {
    for (int64_t row = 0; row < batch->rows(); ++row) {
      const int64_t page = batch->places[size_t(row)] / shape.pageSize,
                    place = batch->places[size_t(row)] % shape.pageSize;
      const int64_t to = page * pageElements() * 2 + place * tokenElements();
      const float *k = qkv + row * shape.rowSize() + shape.outSize(), *v = k + tokenElements();
      std::copy_n(k, tokenElements(), keys + to);
      std::copy_n(v, tokenElements(), values + to);
    }
  }

  // Keys of a page, then its values.
  heddle_tensor inPages(float *address) const {
    const int64_t page = pageElements() * 2, token = tokenElements(), dim = shape.headDim;
    return {address, HEDDLE_FP32, 0, {shape.pages, shape.pageSize, shape.kvHeads, dim}, {page, token, dim, 1}};
  }

  const AttentionShape shape;
  Pattern pattern;
  const int threads;
  std::vector<float> cache; // [layers, pages, 2, page size, kv heads, head dim]
  const Batch *batch = nullptr;
};

} // namespace

api::Result<std::unique_ptr<Attention>> attentionOnProcessors(const AttentionShape &shape, int threads) {
  heddle_pattern *parsed = nullptr;
  const api::Status status = api::Status::of(heddle_pattern_parse(kPattern, nullptr, nullptr, &parsed));
  if (!status)
    return status;
  return std::unique_ptr<Attention>(new CpuAttention(shape, Pattern(parsed), threads));
}

} // namespace server
