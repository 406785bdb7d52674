#include "compiler/Io/ExtremeScores.h"
#include "compiler/Io/RandomTensor.h"

#include <cmath>

namespace heddle {

// Where the channels of one row of q or k begin.
static int64_t rowAt(const HostTensor &tensor, int64_t batch, int64_t row, int64_t head) {
  return ((batch * tensor.shape[1] + row) * tensor.shape[2] + head) * tensor.shape[3];
}

namespace {

struct SpikePlace {
  int64_t query, key; // first elements of the two rows
  int64_t channel;
};

} // namespace

static std::vector<SpikePlace> spikePlaces(const AttentionInputs &inputs, int64_t count, uint64_t seed) {
  const AttentionSizes &sizes = inputs.sizes;
  RandomStream stream(seed, "score spikes");
  std::vector<SpikePlace> places;
  uint64_t word = 0;
  for (int64_t batch = 0; batch < sizes.batch; ++batch)
    for (int64_t head = 0; head < sizes.heads; ++head)
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = stream.word(word++) % sizes.seqlenQ, key = stream.word(word++) % sizes.seqlenK;
        places.push_back({rowAt(inputs.q, batch, row, head),
                          rowAt(inputs.k, batch, key, head / (sizes.heads / sizes.kvHeads)), i % sizes.headDim});
      }
  return places;
}

Status plantSpikes(AttentionInputs &inputs, const ScoreSpikes &spikes, uint64_t seed) {
  const AttentionSizes &sizes = inputs.sizes;
  double element = std::sqrt(std::abs(spikes.value) * std::sqrt(double(sizes.headDim)));
  if (!(element <= traitsOf(inputs.dtype()).largest))
    return Status::invalidArgument("a score of that size needs elements of " + std::to_string(element) + ", beyond " +
                                   dtypeName(inputs.dtype()));
  if (sizes.seqlenQ == 0 || sizes.seqlenK == 0 || sizes.headDim == 0)
    return {};
  std::vector<SpikePlace> places = spikePlaces(inputs, spikes.count, seed);
  for (const SpikePlace &place : places)
    for (int64_t c = 0; c < sizes.headDim; ++c)
      inputs.q.set(place.query + c, 0);
  for (const SpikePlace &place : places) {
    inputs.q.set(place.query + place.channel, static_cast<float>(element));
    inputs.k.set(place.key + place.channel, static_cast<float>(std::copysign(element, spikes.value)));
  }
  return {};
}

static constexpr int64_t kChannels = 2; // one product is within range, the sum of two is not

static bool hasInfiniteSums(const ElementTraits &element) {
  return element.isOfCalls() && kChannels * element.largest > traitsOf(kAccumulator).largest;
}

static std::string elementsOfInfiniteSums() {
  std::string names;
  for (const ElementTraits &element : kElements)
    if (hasInfiniteSums(element))
      names += (names.empty() ? "" : " or ") + std::string(element.name);
  return names;
}

Status sinkKeys(AttentionInputs &inputs, int64_t first, int64_t last) {
  const AttentionSizes &sizes = inputs.sizes;
  if (!hasInfiniteSums(traitsOf(inputs.dtype())))
    return Status::invalidArgument(std::string("products of ") + dtypeName(inputs.dtype()) +
                                   " do not overflow fp32: scores of -infinity need " + elementsOfInfiniteSums());
  if (sizes.headDim < kChannels)
    return Status::invalidArgument("scores of -infinity need two channels");
  if (first < 0 || first > last || last >= sizes.seqlenK)
    return Status::invalidArgument("expected keys within 0-" + std::to_string(sizes.seqlenK - 1) + ", got " +
                                   std::to_string(first) + "-" + std::to_string(last));
  for (int64_t row = 0, rows = inputs.q.elements() / sizes.headDim; row < rows; ++row)
    for (int64_t c = 0; c < kChannels; ++c)
      inputs.q.set(row * sizes.headDim + c, 1);
  for (int64_t batch = 0; batch < sizes.batch; ++batch)
    for (int64_t key = first; key <= last; ++key)
      for (int64_t head = 0; head < sizes.kvHeads; ++head)
        for (int64_t c = 0; c < kChannels; ++c)
          inputs.k.set(rowAt(inputs.k, batch, key, head) + c, static_cast<float>(-traitsOf(inputs.dtype()).largest));
  return {};
}

} // namespace heddle
