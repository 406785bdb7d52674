// The decode kernel of a source, as what it shares with others is a template on it: its traits and its pattern are those
// of the source. And its numbers by short names.
#pragma once

#include "Decode/decode_params.cuh"
#include "Forward/key_products.cuh"
#include "Forward/online_softmax.cuh"

namespace heddle {

struct DecodeKernel : SoftmaxNumbers<KeyProductShape<WarpProductShape<WarpBlock<ElementNumbers<KernelTraits>>>>> {
  using Pattern = ::Pattern;
  using Params = KernelParams;
};
using K = DecodeKernel;

using Element = K::Element;
using KeyValueProducts = KeyProducts<K>;
constexpr int kElementBytes = K::kElementBytes, kPieceElements = K::kPieceElements, kKeyBytes = K::kKeyBytes;
constexpr int kThreads = K::kThreads;
constexpr int kChunkN = K::kChunkN, kRowTiles = K::kRowTiles, kScoreTiles = K::kScoreTiles,
              kValueTiles = K::kValueTiles;

} // namespace heddle
