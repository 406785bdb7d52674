// What the changed inputs promise about scores, computed here from their elements.
#include "compiler/Io/ExtremeScores.h"

#include <cmath>
#include <doctest/doctest.h>

using namespace heddle;

namespace {

AttentionInputs inputsOf(DType dtype) {
  auto inputs = randomAttentionInputs({2, 40, 50, 4, 2, 64, 16}, dtype, 3);
  REQUIRE_MESSAGE(inputs.isOk(), inputs.status().message());
  return inputs.take();
}

struct Pair {
  int64_t batch, head, row, key;
};

template <class Visit> void forEachPair(const AttentionSizes &sizes, Visit &&visit) {
  for (int64_t batch = 0; batch < sizes.batch; ++batch)
    for (int64_t head = 0; head < sizes.heads; ++head)
      for (int64_t row = 0; row < sizes.seqlenQ; ++row)
        for (int64_t key = 0; key < sizes.seqlenK; ++key)
          visit(Pair{batch, head, row, key});
}

/// Accumulated in `Number`.
template <class Number> Number scoreOf(const AttentionInputs &inputs, const Pair &pair) {
  const AttentionSizes &sizes = inputs.sizes;
  int64_t q = ((pair.batch * sizes.seqlenQ + pair.row) * sizes.heads + pair.head) * sizes.headDim;
  int64_t kvHead = pair.head / (sizes.heads / sizes.kvHeads);
  int64_t k = ((pair.batch * sizes.seqlenK + pair.key) * sizes.kvHeads + kvHead) * sizes.headDim;
  Number sum = 0;
  for (int64_t c = 0; c < sizes.headDim; ++c)
    sum += Number(inputs.q.get(q + c)) * Number(inputs.k.get(k + c));
  return sum / std::sqrt(Number(sizes.headDim));
}

} // namespace

TEST_CASE("every head has its spikes, and their scores are exact in fp32") {
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32})
    for (double value : {1e4, -1e4}) {
      CAPTURE(dtypeName(dtype));
      AttentionInputs inputs = inputsOf(dtype);
      REQUIRE(plantSpikes(inputs, {3, value}, 5).isOk());
      std::vector<int> spikes(2 * 4);
      forEachPair(inputs.sizes, [&](const Pair &pair) {
        double score = scoreOf<double>(inputs, pair);
        CHECK(std::abs(score) < 1.02e4);
        if (std::abs(score / value - 1) > 0.02)
          return;
        ++spikes[pair.batch * 4 + pair.head];
        CHECK((dtype == DType::fp32 || scoreOf<float>(inputs, pair) == score));
      });
      for (int count : spikes)
        CHECK(count >= 3);
    }
}

TEST_CASE("spikes depend on the seed, and none changes nothing") {
  AttentionInputs plain = inputsOf(DType::bf16), none = plain, a = plain, b = plain, again = plain;
  REQUIRE(plantSpikes(none, {0, 1e4}, 5).isOk());
  CHECK(none.q.data == plain.q.data);
  CHECK(none.k.data == plain.k.data);
  REQUIRE(plantSpikes(a, {3, 1e4}, 5).isOk());
  REQUIRE(plantSpikes(b, {3, 1e4}, 6).isOk());
  REQUIRE(plantSpikes(again, {3, 1e4}, 5).isOk());
  CHECK(a.q.data != b.q.data);
  CHECK(a.q.data == again.q.data);
  CHECK(a.v.data == plain.v.data);
}

TEST_CASE("sunk keys score -infinity in fp32 in every row, the others stay finite") {
  for (DType dtype : {DType::bf16, DType::fp32}) {
    AttentionInputs inputs = inputsOf(dtype);
    REQUIRE(sinkKeys(inputs, 7, 12).isOk());
    forEachPair(inputs.sizes, [&](const Pair &pair) {
      float score = scoreOf<float>(inputs, pair);
      bool isSunk = pair.key >= 7 && pair.key <= 12;
      CHECK((isSunk ? score == -INFINITY : std::abs(score) < 100));
    });
    for (int64_t i = 0; i < inputs.k.elements(); ++i)
      CHECK(std::isfinite(inputs.k.get(i)));
  }
}

TEST_CASE("what cannot be is refused") {
  AttentionInputs half = inputsOf(DType::fp16), brain = inputsOf(DType::bf16);
  CHECK(sinkKeys(half, 0, 1).code() == StatusCode::invalidArgument);
  CHECK(sinkKeys(brain, 3, 50).message() == "expected keys within 0-49, got 3-50");
  CHECK(sinkKeys(brain, 4, 3).code() == StatusCode::invalidArgument);
  CHECK(plantSpikes(half, {1, 1e9}, 1).message().find("beyond fp16") != std::string::npos);
  CHECK(plantSpikes(brain, {1, 1e9}, 1).isOk());
}
