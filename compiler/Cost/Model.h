// Owns what a model is made of: how many parameters, which matrix products a token costs. Nothing here knows a GPU.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::cost {

/// Queries, and keys with values, through low ranks; 0: not so.
struct LatentSpec {
  int64_t query = 0, keyValue = 0, rope = 0;
  bool isUsed() const { return keyValue > 0; }
};

struct ModelSpec {
  int64_t layers = 0, width = 0, heads = 0, kvHeads = 0, headDim = 0, valueDim = 0, ffn = 0, vocabulary = 0;
  int64_t experts = 0, activeExperts = 0, sharedExperts = 0, expertFfn = 0, denseLayers = 0;
  int64_t expertHosts = 0; ///< that the experts of a token lie on at most; 0: any
  LatentSpec latent = {};
  bool isGated = true;            ///< three matrices of the ffn, not two
  bool isTied = false;            ///< one matrix for words in and out
  bool hasParallelBlocks = false; ///< attention and ffn of a layer read the same input

  bool hasExperts() const { return experts > 0; }
  int64_t expertLayers() const { return hasExperts() ? layers - denseLayers : 0; }
};

/// rows x inner times inner x columns; rows are tokens.
struct Product {
  double inner, columns;
  enum class Split { columns, inner, none } split; ///< which one tensor parallelism divides
  double weights() const { return inner * columns; }
};

/// The products of one layer, of attention alone.
std::vector<Product> attentionProducts(const ModelSpec &model);
/// The products of one ffn of so many channels, or one expert.
std::vector<Product> ffnProducts(const ModelSpec &model, int64_t channels);

struct ParameterCounts {
  double attention = 0; ///< of a layer
  double denseFfn = 0;  ///< of a layer that has one
  double experts = 0;   ///< all routed ones of a layer
  double sharedFfn = 0; ///< shared experts and the router of a layer
  double embedding = 0; ///< one matrix of words
  double total = 0;
  double active = 0; ///< that a token is multiplied with: the embedding is looked up, the head is a product
};
ParameterCounts countParameters(const ModelSpec &model);

} // namespace heddle::cost
