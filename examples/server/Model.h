//===- Model.h - the byte model of examples/python/byte_model.py ------------===//
// Its forward pass: an embedding, blocks of attention and a feed-forward part, each behind an RMSNorm and beside a
// residual, and a head that says which byte is next. Tokens are bytes.
//===----------------------------------------------------------------------===//
#pragma once

#include "Attention.h"
#include "Dense.h"
#include "Weights.h"

namespace server {

constexpr int64_t kVocabulary = 256;

// Tokens of a step: bytes and positions of the batch's rows, and the rows whose next byte is asked for, ascending.
struct Tokens {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> positions;
  std::vector<int32_t> asked;
};

class ByteModel {
public:
  // NOT_FOUND and INVALID_ARGUMENT name the tensor that is missing or of another size.
  static api::Result<ByteModel> create(const Weights &weights);

  int64_t layers() const { return int64_t(blocks.size()); }
  int64_t heads() const { return headCount; }
  int64_t kvHeads() const { return kvHeadCount; }
  int64_t headDim() const { return dim / headCount; }
  Reach reach() const { return trainedReach; }

  // logits: [asked, kVocabulary].
  api::Status run(const Tokens &tokens, const Batch &batch, Attention &attention, std::vector<float> &logits) const;

private:
  struct Block {
    std::vector<float> attentionNorm, mlpNorm;
    Linear project, out, up, down;
  };
  api::Status readBlock(const Weights &weights, const std::string &prefix);
  std::vector<float> embed(const Tokens &tokens) const;
  api::Status runBlock(int64_t layer, int64_t rows, Attention &attention, std::vector<float> &x) const;
  void runHead(const Tokens &tokens, const std::vector<float> &x, std::vector<float> &logits) const;

  int64_t dim = 0, headCount = 0, kvHeadCount = 0;
  Reach trainedReach;
  std::vector<float> embedding, headNorm;
  Linear head;
  std::vector<Block> blocks;
};

} // namespace server
