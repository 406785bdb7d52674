// The conversions of 16-bit types, exhaustively, and the hot loops of every variant that this
// processor runs against plain ones.
#include "codegen/Cpu/TileMath.h"
#include "runtime/Core/ElementConvert.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

using namespace heddle;

namespace {

struct alignas(64) Line {
  float values[16];
};

// A tile of rows x lanes floats, aligned as the loops want it.
class Tile {
public:
  Tile(int rows, int lanes) : lanes(lanes), lines(size_t(rows) * lanes / 16) {}
  float *data() { return lines.front().values; }
  float &at(int row, int lane) { return data()[size_t(row) * lanes + lane]; }
  void fill(std::mt19937 &random, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    for (Line &line : lines)
      for (float &value : line.values)
        value = uniform(random);
  }

private:
  int lanes;
  std::vector<Line> lines;
};

std::vector<TileMath> variants() {
  int count = 0;
  const TileMath *all = allTileMath(count);
  return {all, all + count};
}

// The nearest fp16 by search over its definition: sign, 5 exponent bits, 10 fraction bits.
double fp16Value(int bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return fraction ? std::nan("") : INFINITY;
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

} // namespace

TEST_CASE("every fp16 is converted exactly and comes back") {
  long wrong = 0;
  for (int bits = 0; bits < 0x8000; ++bits) {
    double expected = fp16Value(bits);
    float positive = fp16ToFloat(uint16_t(bits)), negative = fp16ToFloat(uint16_t(bits | 0x8000));
    if (std::isnan(expected)) {
      wrong += !std::isnan(positive) || !std::isnan(fp16ToFloat(floatToFp16(positive)));
      continue;
    }
    wrong += positive != expected || negative != -expected || !std::signbit(negative);
    wrong += floatToFp16(positive) != bits || floatToFp16(negative) != (bits | 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("between two fp16 the nearer one is taken, and the even one from the middle") {
  long wrong = 0;
  for (int bits = 0; bits < 0x7bff; ++bits) {
    float low = float(fp16Value(bits)), high = float(fp16Value(bits + 1));
    float middle = low + (high - low) / 2;
    wrong += floatToFp16(middle) != (bits & 1 ? bits + 1 : bits);
    wrong += floatToFp16(std::nextafter(middle, low)) != bits;
    wrong += floatToFp16(std::nextafter(middle, high)) != bits + 1;
  }
  CHECK(wrong == 0);
  CHECK(floatToFp16(65519.996f) == 0x7bff);
  CHECK(floatToFp16(65520.0f) == 0x7c00);
  CHECK(floatToFp16(-INFINITY) == 0xfc00);
}

TEST_CASE("every bf16 comes back, and rounding is to nearest even") {
  long wrong = 0;
  for (int bits = 0; bits < 0x7f80; ++bits) {
    float value = bf16ToFloat(uint16_t(bits));
    wrong += floatToBf16(value) != bits || floatToBf16(-value) != (bits | 0x8000);
    uint32_t middle = uint32_t(bits) << 16 | 0x8000u;
    wrong += floatToBf16(floatFromBits(middle)) != (bits & 1 ? bits + 1 : bits);
    wrong += floatToBf16(floatFromBits(middle - 1)) != bits;
    wrong += floatToBf16(floatFromBits(middle + 1)) != bits + 1;
  }
  CHECK(wrong == 0);
  CHECK(std::isnan(bf16ToFloat(floatToBf16(floatFromBits(0x7f800001u)))));
}

TEST_CASE("products equal plain loops for every row count") {
  std::mt19937 random(1);
  for (const TileMath &math : variants())
    for (int rows : {1, 5, 6, 8, 19}) {
      Tile a(rows, 48), b(48, 96), c(rows, 96), expected(rows, 96);
      a.fill(random, -1, 1);
      b.fill(random, -1, 1);
      c.fill(random, -1, 1);
      double largest = 0;
      std::vector<double> plain;
      for (int row = 0; row < rows; ++row)
        for (int lane = 0; lane < 96; ++lane) {
          double sum = c.at(row, lane);
          for (int i = 0; i < 37; ++i)
            sum += double(a.at(row, i)) * b.at(i, lane);
          plain.push_back(sum);
        }
      math.addProduct({a.data(), 48, 1, b.data(), c.data(), rows, 37, 96});
      for (int row = 0; row < rows; ++row)
        for (int lane = 0; lane < 96; ++lane)
          largest = std::max(largest, std::abs(c.at(row, lane) - plain[row * 96 + lane]));
      INFO(math.name << " rows " << rows);
      CHECK(largest < 1e-5);
    }
}

TEST_CASE("a softmax step gives powers of two relative to the new maximum") {
  std::mt19937 random(2);
  for (const TileMath &math : variants()) {
    Tile scores(9, 32), state(3, 32);
    scores.fill(random, -140, 20);
    std::fill_n(state.data(), 32, -INFINITY);
    state.at(0, 3) = 30; // a lane that already has a larger maximum
    state.at(1, 3) = 2;
    for (int key = 0; key < 9; ++key)
      scores.at(key, 5) = -INFINITY; // a lane that keeps nothing
    std::vector<std::vector<double>> before(9, std::vector<double>(32));
    for (int key = 0; key < 9; ++key)
      for (int lane = 0; lane < 32; ++lane)
        before[key][lane] = scores.at(key, lane);
    math.softmaxStep({scores.data(), 9, 32, &state.at(0, 0), &state.at(1, 0), &state.at(2, 0)});
    double largest = 0;
    for (int lane = 0; lane < 32; ++lane) {
      double maximum = lane == 3 ? 30 : -INFINITY, sum = lane == 3 ? 2 : 0;
      for (int key = 0; key < 9; ++key)
        maximum = std::max(maximum, before[key][lane]);
      sum *= lane == 3 ? std::exp2(30 - maximum) : 0;
      for (int key = 0; key < 9; ++key) {
        double power = lane == 5 ? 0.0 : std::exp2(before[key][lane] - maximum);
        largest = std::max(largest, std::abs(scores.at(key, lane) - power));
        sum += power;
      }
      largest = std::max(largest, std::abs(state.at(1, lane) - sum));
      CHECK(state.at(0, lane) == float(maximum));
    }
    INFO(math.name);
    CHECK(largest < 1e-6);
    CHECK(state.at(1, 5) == 0.0f);
    CHECK(state.at(2, 5) == 0.0f);
  }
}

TEST_CASE("powers of two are exact at integers and within 3e-7 elsewhere") {
  for (const TileMath &math : variants()) {
    double largest = 0;
    for (int from = 0; from < 126 * 64; from += 16) {
      Tile scores(2, 32), state(3, 32);
      std::fill_n(state.data(), 32, -INFINITY);
      for (int lane = 0; lane < 32; ++lane)
        scores.at(1, lane) = -float(from + lane) / 64;
      math.softmaxStep({scores.data(), 2, 32, &state.at(0, 0), &state.at(1, 0), &state.at(2, 0)});
      for (int lane = 0; lane < 32; ++lane) {
        double expected = std::exp2(-double(from + lane) / 64);
        if (from + lane <= 126 * 64)
          largest = std::max(largest, std::abs(scores.at(1, lane) / expected - 1));
        if ((from + lane) % 64 == 0 && from + lane <= 126 * 64)
          CHECK(scores.at(1, lane) == expected);
      }
    }
    INFO(math.name);
    CHECK(largest < 3e-7);
    CHECK(largest > 0);
  }
}

TEST_CASE("scaling and masking touch the lanes that they should") {
  for (const TileMath &math : variants()) {
    Tile tile(2, 32), factor(1, 32);
    std::vector<uint8_t> keep(32);
    for (int lane = 0; lane < 32; ++lane) {
      tile.at(0, lane) = 1;
      tile.at(1, lane) = 2;
      factor.at(0, lane) = float(lane);
      keep[lane] = lane % 3 == 0;
    }
    math.scaleLanes(tile.data(), 2, 32, factor.data());
    math.maskLanes(tile.data(), 32, keep.data());
    long wrong = 0;
    for (int lane = 0; lane < 32; ++lane) {
      wrong += tile.at(0, lane) != (lane % 3 == 0 ? float(lane) : -INFINITY);
      wrong += tile.at(1, lane) != 2.0f * lane;
    }
    INFO(math.name);
    CHECK(wrong == 0);
  }
}
