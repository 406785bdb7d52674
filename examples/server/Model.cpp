//===- Model.cpp - the byte model of examples/python/byte_model.py ----------===//
#include "Model.h"

#include <algorithm>
#include <cmath>

namespace server {
namespace {

// Reads tensors until one is not as it should be.
class Tensors {
public:
  explicit Tensors(const Weights &weights) : weights(weights) {}

  std::vector<float> vector(const std::string &name, int64_t size) { return take(name, {size}).values; }
  Linear linear(const std::string &name, int64_t outputs, int64_t inputs, bool hasBias) {
    const Weight weight = take(name + ".weight", {outputs, inputs});
    if (!status)
      return {};
    const int64_t found = weight.shape[0];
    std::vector<float> bias = hasBias ? vector(name + ".bias", found) : std::vector<float>();
    return status ? Linear(weight.values, bias, found, weight.shape[1]) : Linear();
  }
  Weight take(const std::string &name, const std::vector<int64_t> &shape) {
    if (!status)
      return {};
    api::Result<const Weight *> found = weights.find(name, shape);
    if (!found)
      status = found.status();
    return found ? **found : Weight();
  }

  api::Status status;

private:
  const Weights &weights;
};

bool isPositive(const api::Result<int64_t> &number) { return number && *number > 0; }

} // namespace

api::Result<ByteModel> ByteModel::create(const Weights &weights) {
  ByteModel model;
  const api::Result<int64_t> heads = weights.number("heads"), kvHeads = weights.number("kv_heads"),
                             first = weights.number("first"), left = weights.number("left");
  for (const api::Result<int64_t> *number : {&heads, &kvHeads, &first, &left})
    if (!*number)
      return number->status();
  Tensors tensors(weights);
  const Weight embedding = tensors.take("embedding.weight", {kVocabulary, 0});
  if (!tensors.status)
    return tensors.status;
  model.dim = embedding.shape[1], model.embedding = embedding.values;
  if (!isPositive(heads) || !isPositive(kvHeads) || *heads % *kvHeads != 0 || model.dim % *heads != 0 ||
      model.dim % 2 != 0 || *first < 0 || *left < 0 || *first > (1 << 28) || *left > (1 << 28))
    return api::Status(HEDDLE_INVALID_ARGUMENT,
                       "weights: __metadata__: heads, kv_heads, first and left do not fit a model of dim " +
                           std::to_string(model.dim));
  model.headCount = *heads, model.kvHeadCount = *kvHeads;
  model.trainedReach = {*first, *left};
  model.headNorm = tensors.vector("head.0.weight", model.dim);
  model.head = tensors.linear("head.1", kVocabulary, model.dim, true);
  if (!tensors.status)
    return tensors.status;
  for (std::string prefix = "blocks.0."; weights.tensors.count(prefix + "attention.0.weight") > 0;
       prefix = "blocks." + std::to_string(model.layers()) + ".")
    if (api::Status status = model.readBlock(weights, prefix); !status)
      return status;
  if (model.blocks.empty())
    return api::Status(HEDDLE_NOT_FOUND, "weights: there is no tensor blocks.0.attention.0.weight");
  return model;
}

api::Status ByteModel::readBlock(const Weights &weights, const std::string &prefix) {
  Tensors tensors(weights);
  Block block;
  block.attentionNorm = tensors.vector(prefix + "attention.0.weight", dim);
  block.project = tensors.linear(prefix + "attention.1.project", (headCount + 2 * kvHeadCount) * headDim(), dim, false);
  block.out = tensors.linear(prefix + "attention.1.out", dim, dim, false);
  block.mlpNorm = tensors.vector(prefix + "mlp.0.weight", dim);
  block.up = tensors.linear(prefix + "mlp.1", 0, dim, true);
  block.down = tensors.linear(prefix + "mlp.3", dim, block.up.outputs(), true);
  blocks.push_back(std::move(block));
  return tensors.status;
}

// Bytes and sines of their positions.
std::vector<float> ByteModel::embed(const Tokens &tokens) const {
  std::vector<float> x(tokens.bytes.size() * size_t(dim));
  for (size_t row = 0; row < tokens.bytes.size(); ++row) {
    float *to = &x[row * size_t(dim)];
    const float *from = &embedding[size_t(tokens.bytes[row]) * size_t(dim)];
    for (int64_t i = 0; i < dim; i += 2) {
      const float angle = float(tokens.positions[row]) * std::exp(float(i) * float(-std::log(10000.0) / double(dim)));
      to[i] = from[i] + std::sin(angle), to[i + 1] = from[i + 1] + std::cos(angle);
    }
  }
  return x;
}

api::Status ByteModel::runBlock(int64_t layer, int64_t rows, Attention &attention, std::vector<float> &x) const {
  const Block &block = blocks[size_t(layer)];
  std::vector<float> normed(x.size()), added(x.size());
  std::vector<float> qkv(size_t(rows * block.project.outputs())), mixed(x.size());
  rmsNorm(x.data(), block.attentionNorm, rows, normed.data());
  block.project.run(normed.data(), rows, qkv.data());
  if (api::Status status = attention.run(layer, qkv.data(), mixed.data()); !status)
    return status;
  block.out.run(mixed.data(), rows, added.data());
  std::transform(x.begin(), x.end(), added.begin(), x.begin(), std::plus<float>());
  rmsNorm(x.data(), block.mlpNorm, rows, normed.data());
  std::vector<float> wide(size_t(rows * block.up.outputs()));
  block.up.run(normed.data(), rows, wide.data());
  gelu(wide, int64_t(wide.size()));
  block.down.run(wide.data(), rows, added.data());
  std::transform(x.begin(), x.end(), added.begin(), x.begin(), std::plus<float>());
  return {};
}

void ByteModel::runHead(const Tokens &tokens, const std::vector<float> &x, std::vector<float> &logits) const {
  const int64_t count = int64_t(tokens.asked.size());
  std::vector<float> chosen, normed(size_t(count * dim));
  for (int32_t row : tokens.asked)
    chosen.insert(chosen.end(), x.begin() + row * dim, x.begin() + (row + 1) * dim);
  rmsNorm(chosen.data(), headNorm, count, normed.data());
  logits.resize(size_t(count * kVocabulary));
  head.run(normed.data(), count, logits.data());
}

api::Status ByteModel::run(const Tokens &tokens, const Batch &batch, Attention &attention,
                           std::vector<float> &logits) const {
  if (api::Status status = attention.begin(batch); !status)
    return status;
  std::vector<float> x = embed(tokens);
  for (int64_t layer = 0; layer < layers(); ++layer)
    if (api::Status status = runBlock(layer, batch.rows(), attention, x); !status)
      return status;
  runHead(tokens, x, logits);
  return {};
}

} // namespace server
