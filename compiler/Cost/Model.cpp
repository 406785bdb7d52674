#include "compiler/Cost/Model.h"

namespace heddle::cost {
namespace {

double weightsOf(const std::vector<Product> &products) {
  double sum = 0;
  for (const Product &product : products)
    sum += product.weights();
  return sum;
}

} // namespace

std::vector<Product> attentionProducts(const ModelSpec &model) {
  const double width = double(model.width), heads = double(model.heads), kvHeads = double(model.kvHeads),
               head = double(model.headDim), value = double(model.valueDim);
  using Split = Product::Split;
  const Product out = {heads * value, width, Split::inner};
  if (!model.latent.isUsed())
    return {{width, heads * head + kvHeads * (head + value), Split::columns}, out};
  const double query = double(model.latent.query), keyValue = double(model.latent.keyValue),
               rope = double(model.latent.rope);
  std::vector<Product> products = {{width, query + keyValue + rope, Split::none}};
  products.push_back({query > 0 ? query : width, heads * head, Split::columns});
  products.push_back({keyValue, heads * (head - rope + value), Split::columns});
  products.push_back(out);
  return products;
}

std::vector<Product> ffnProducts(const ModelSpec &model, int64_t channels) {
  const double width = double(model.width), inner = double(channels);
  return {{width, inner * (model.isGated ? 2 : 1), Product::Split::columns}, {inner, width, Product::Split::inner}};
}

ParameterCounts countParameters(const ModelSpec &model) {
  ParameterCounts counts;
  counts.attention = weightsOf(attentionProducts(model));
  counts.denseFfn = weightsOf(ffnProducts(model, model.ffn));
  counts.embedding = double(model.vocabulary) * double(model.width);
  const double expert = model.hasExperts() ? weightsOf(ffnProducts(model, model.expertFfn)) : 0;
  counts.experts = expert * double(model.experts);
  counts.sharedFfn =
      model.hasExperts() ? expert * double(model.sharedExperts) + double(model.experts) * double(model.width) : 0;
  const double expertLayers = double(model.expertLayers()), dense = double(model.layers) - expertLayers,
               common = double(model.layers) * counts.attention + dense * counts.denseFfn +
                        expertLayers * counts.sharedFfn + counts.embedding;
  counts.total = common + expertLayers * counts.experts + (model.isTied ? 0 : counts.embedding);
  counts.active = common + expertLayers * expert * double(model.activeExperts);
  return counts;
}

} // namespace heddle::cost
