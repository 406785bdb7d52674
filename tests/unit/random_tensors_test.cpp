// Keeps the promise of compiler/Io/RandomTensor.h that the numbers never change and are standard
// normal, and that of HostTensor.h that the conversions round to nearest even.
#include "compiler/Io/RandomTensor.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace heddle;

// The golden values were computed from the formula in the header by a separate program.
TEST_CASE("the words and values of a stream are fixed for ever") {
  RandomStream q(1, "q");
  CHECK(q.word(0) == 0xf679d34a74fd2411ull);
  CHECK(q.word(1) == 0xb1bc1bd871a43d1full);
  CHECK(q.word(1000000007) == 0x89c762e291436d8eull);
  CHECK(q.normal(0) == 0x1.9e08000000000p-3f);
  CHECK(q.normal(123456789) == 0x1.2efc000000000p-2f);
  CHECK(RandomStream(2, "v").normal(5) == -0x1.bf68000000000p+0f);
}

TEST_CASE("a tensor depends on seed, name and element number only") {
  HostTensor small = randomNormalTensor(DType::fp32, {2, 3}, 9, "q");
  HostTensor grown = randomNormalTensor(DType::fp32, {4, 3}, 9, "q");
  for (int64_t i = 0; i < small.elements(); ++i)
    CHECK(small.get(i) == grown.get(i));
  CHECK(randomNormalTensor(DType::fp32, {2, 3}, 9, "q").data == small.data);
  CHECK(randomNormalTensor(DType::fp32, {2, 3}, 9, "k").data != small.data);
  CHECK(randomNormalTensor(DType::fp32, {2, 3}, 10, "q").data != small.data);
  HostTensor brain = randomNormalTensor(DType::bf16, {2, 3}, 9, "q");
  for (int64_t i = 0; i < small.elements(); ++i)
    CHECK(brain.get(i) == bf16ToFloat(floatToBf16(small.get(i))));
}

TEST_CASE("a tensor that several threads make is that of its stream") {
  const int64_t elements = (int64_t(5) << 18) + 7;
  const HostTensor tensor = randomNormalTensor(DType::fp32, {elements}, 9, "q");
  const RandomStream stream(9, "q");
  int64_t wrong = 0;
  for (int64_t i = 0; i < elements; ++i)
    wrong += tensor.get(i) != stream.normal(uint64_t(i));
  CHECK(wrong == 0);
}

TEST_CASE("many values at once are the sums of the fields of their words, and how far they are is told") {
  const RandomStream stream(7, "k");
  float values[1003];
  stream.normals(12345, 1003, values);
  int64_t wrong = 0;
  for (int i = 0; i < 1003; ++i) {
    int64_t sum = -6 * 65535;
    for (uint64_t word = 0; word < 3; ++word)
      for (int field = 0; field < 4; ++field)
        sum += int64_t(stream.word(3 * uint64_t(12345 + i) + word) >> (16 * field) & 0xffff);
    wrong += values[i] != float(sum) / 65536;
  }
  CHECK(wrong == 0);
  double last = -1;
  randomNormalTensor(DType::bf16, {int64_t(3) << 18}, 9, "q", [&](double share) {
    CHECK(share > last);
    CHECK(share < 1);
    last = share;
  });
}

// Mean, variance and the distribution at -2, -1, 0, 1, 2 of a million values; five sigma of the
// sampling error plus the 0.0025 that the header allows.
TEST_CASE("the values are standard normal") {
  const int count = 1000000;
  RandomStream stream(3, "test");
  double sum = 0, squares = 0, neighbours = 0, before = 0;
  int below[5] = {};
  for (int i = 0; i < count; ++i) {
    double value = stream.normal(static_cast<uint64_t>(i));
    REQUIRE(std::fabs(value) < 6);
    sum += value;
    squares += value * value;
    neighbours += value * before;
    before = value;
    for (int t = 0; t < 5; ++t)
      below[t] += value < t - 2 ? 1 : 0;
  }
  CHECK(std::fabs(sum / count) < 0.005);
  CHECK(std::fabs(squares / count - 1) < 0.0075);
  CHECK(std::fabs(neighbours / count) < 0.005);
  for (int t = 0; t < 5; ++t) {
    double expected = 0.5 * std::erfc(-(t - 2) / std::sqrt(2.0));
    CHECK(std::fabs(double(below[t]) / count - expected) < 0.005);
  }
}

TEST_CASE("every 16-bit value survives the way to fp32 and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float brain = bf16ToFloat(half), ieee = fp16ToFloat(half);
    if (std::isnan(brain))
      REQUIRE(std::isnan(bf16ToFloat(floatToBf16(brain))));
    else
      REQUIRE(floatToBf16(brain) == half);
    if (std::isnan(ieee))
      REQUIRE(std::isnan(fp16ToFloat(floatToFp16(ieee))));
    else
      REQUIRE(floatToFp16(ieee) == half);
  }
}

// Between two neighbours the midpoint goes to the even one, everything else to the nearer one.
template <class ToFloat, class FromFloat>
static void checkRounding(uint16_t last, ToFloat toFloat, FromFloat fromFloat) {
  for (uint32_t bits = 0; bits < last; ++bits) {
    uint16_t low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    float middle = static_cast<float>((double(toFloat(low)) + double(toFloat(high))) / 2);
    REQUIRE(fromFloat(middle) == (low % 2 == 0 ? low : high));
    REQUIRE(fromFloat(std::nextafter(middle, 0.0f)) == low);
    REQUIRE(fromFloat(std::nextafter(middle, std::numeric_limits<float>::infinity())) == high);
    REQUIRE(fromFloat(-middle) == ((low % 2 == 0 ? low : high) | 0x8000));
  }
}

TEST_CASE("conversions round to nearest, ties to even") {
  checkRounding(0x7bff, fp16ToFloat, floatToFp16);
  checkRounding(0x7f7f, bf16ToFloat, floatToBf16);
  CHECK(fp16ToFloat(0x3c00) == 1.0f);
  CHECK(fp16ToFloat(0x0001) == 0x1p-24f);
  CHECK(fp16ToFloat(0x7bff) == 65504.0f);
  CHECK(bf16ToFloat(0x3f80) == 1.0f);
}

TEST_CASE("overflow becomes infinity") {
  CHECK(floatToFp16(65519.996f) == 0x7bff);
  CHECK(floatToFp16(65520.0f) == 0x7c00);
  CHECK(floatToFp16(-1e30f) == 0xfc00);
  CHECK(floatToBf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(floatToBf16(-std::numeric_limits<float>::infinity()) == 0xff80);
}
