//===- drift_test.cpp - kernels that become slower --------------------------===//
// Times are drawn from a generator of a counter and a seed, so that they are the same in every run: normal noise, noise of
// two modes, and noise with heavy tails, of which some samples take many times as long.
#include "runtime/Core/Drift.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

using heddle::DriftTest;

namespace {

constexpr double kExpectedUs = 100;

// Uniform in (0, 1), of a counter: the finaliser of splitmix64.
double uniform(uint64_t seed, uint64_t counter) {
  uint64_t bits = seed * 0xd1342543de82ef95u + (counter + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  return (double(bits >> 11) + 0.5) * 0x1p-53;
}

double normal(uint64_t seed, uint64_t counter) {
  return std::sqrt(-2 * std::log(uniform(seed, 2 * counter))) *
         std::cos(6.283185307179586 * uniform(seed, 2 * counter + 1));
}

// Relative to the median, which is 1.
using Noise = double (*)(uint64_t seed, uint64_t counter);

double quiet(uint64_t seed, uint64_t counter) { return 1 + 0.01 * normal(seed, counter); }
double usual(uint64_t seed, uint64_t counter) { return 1 + 0.03 * normal(seed, counter); }
// Half of them 2% above, half below.
double twoModes(uint64_t seed, uint64_t counter) {
  return (uniform(seed + 1, counter) < 0.5 ? 0.98 : 1.02) + 0.003 * normal(seed, counter);
}
// Cauchy's above the median, which has neither mean nor variance; below it, times end.
double heavy(uint64_t seed, uint64_t counter) {
  const double tail = 0.02 * std::tan(3.141592653589793 * (uniform(seed, counter) - 0.5));
  return tail > 0 ? 1 + tail : 1 - 0.04 * uniform(seed + 1, counter);
}
// Every fifth sample beside other work on the GPU takes up to three times as long.
double crowded(uint64_t seed, uint64_t counter) {
  return uniform(seed + 1, counter) < 0.2 ? 1 + 2 * uniform(seed + 2, counter) : 0.9936 + 0.02 * normal(seed, counter);
}

const Noise kNoises[] = {quiet, usual, twoModes, heavy, crowded};

// The number of the sample, from 1, with which the test says that the kernel is slow; 0: it does not.
int64_t alarmOf(DriftTest &test, Noise noise, uint64_t seed, double factor, int64_t samples, int64_t begin = 0) {
  for (int64_t i = 0; i < samples; ++i)
    if (test.add(kExpectedUs * factor * noise(seed, uint64_t(begin + i)), begin + i))
      return i + 1;
  return 0;
}

double tailOfCoin(int throws, int heads) {
  double sum = 0;
  for (int k = heads; k <= throws; ++k)
    sum +=
        std::exp(std::lgamma(throws + 1) - std::lgamma(k + 1) - std::lgamma(throws - k + 1) - throws * std::log(2.0));
  return sum;
}

// Times of launches of a GPU, relative to their median.
std::vector<double> recorded(const std::string &name) {
  std::ifstream file(HEDDLE_TEST_DATA "/drift/" + name);
  std::string comment;
  std::getline(file, comment);
  std::vector<double> times;
  for (double us = 0; file >> us;)
    times.push_back(us);
  REQUIRE(times.size() == 10000);
  std::vector<double> sorted = times;
  std::nth_element(sorted.begin(), sorted.begin() + 5000, sorted.end());
  for (double &us : times)
    us /= sorted[5000];
  return times;
}

} // namespace

TEST_CASE("a look is wrong once in a million times, whatever the noise") {
  double sum = 0;
  for (const DriftTest::Window &window : DriftTest::kWindows) {
    CHECK(window.samples >= 30);
    CHECK(tailOfCoin(window.samples, window.critical) <= 1e-6 / 3);
    CHECK(tailOfCoin(window.samples, window.critical - 1) > 1e-6 / 3); // and no coarser than that
    sum += tailOfCoin(window.samples, window.critical);
  }
  CHECK(sum <= 1e-6);
}

TEST_CASE("stationary noise gives no alarm in a million looks") {
  for (const Noise noise : kNoises) {
    DriftTest test(kExpectedUs);
    CHECK(alarmOf(test, noise, 7, 1, 2000000) == 0);
  }
}

TEST_CASE("noise around the bound itself gives about one alarm in a million looks") {
  int alarms = 0;
  for (const Noise noise : {quiet, usual}) {
    DriftTest test(kExpectedUs);
    for (int64_t i = 0; i < 5000000; ++i)
      alarms += test.add(kExpectedUs * DriftTest::kTolerance * noise(11, uint64_t(i)), i);
  }
  CHECK(alarms <= 3);
}

TEST_CASE("slowdowns of 5, 10 and 30% are found within 200, 100 and 40 samples, wherever they begin") {
  struct Slowdown {
    double factor;
    int64_t within;
  };
  for (const Noise noise : kNoises)
    for (const Slowdown &slow : {Slowdown{1.05, 200}, {1.10, 100}, {1.30, 40}}) {
      int missed = 0;
      for (uint64_t seed = 0; seed < 100; ++seed) {
        DriftTest test(kExpectedUs);
        const int64_t begin = 200 + int64_t(seed % 10);
        CHECK(alarmOf(test, noise, seed, 1, begin) == 0);
        missed += alarmOf(test, noise, seed, slow.factor, slow.within, begin) == 0;
      }
      CAPTURE(slow.factor);
      CAPTURE(noise(1, 1));
      CHECK(missed == 0);
    }
}

TEST_CASE("recorded times in any order give no alarm in a million looks, in their own where they are slow, and "
          "slowdowns are found") {
  constexpr int64_t kSamples = 5000000;
  for (const char *name : {"h200_window_16k.txt", "h200_window_32k.txt"}) {
    CAPTURE(name);
    const std::vector<double> times = recorded(name);
    DriftTest anyOrder(kExpectedUs), inOrder(kExpectedUs);
    int alarms = 0;
    for (int64_t i = 0; i < kSamples; ++i)
      alarms += anyOrder.add(kExpectedUs * times[size_t(uniform(13, uint64_t(i)) * double(times.size()))], i);
    CHECK(alarms == 0);
    for (const double time : times) // clocks of the GPU change for hundreds of launches
      if (inOrder.add(kExpectedUs * time, 0))
        CHECK(inOrder.found().factor() > DriftTest::kTolerance);
    for (const auto &change : {std::pair<double, size_t>{1.05, 200}, {1.10, 100}, {1.30, 40}})
      for (size_t begin = 0; begin + 500 < times.size(); begin += 97) {
        CAPTURE(change.first);
        const auto &[factor, within] = change;
        DriftTest slow(kExpectedUs);
        bool isFound = false;
        for (size_t i = 0; i < 200 + within; ++i)
          isFound |= slow.add(kExpectedUs * times[begin + i] * (i < 200 ? 1 : factor), 0);
        CHECK(isFound);
      }
  }
}

TEST_CASE("what was found is how slow, and since when") {
  for (const double factor : {1.1, 1.3}) {
    DriftTest test(kExpectedUs);
    REQUIRE(alarmOf(test, usual, 3, 1, 500) == 0);
    REQUIRE(alarmOf(test, usual, 3, factor, 100, 500) > 0);
    CHECK(test.isSlow());
    CHECK(test.found().factor() == doctest::Approx(factor).epsilon(0.02));
    CHECK(test.found().spreadUs == doctest::Approx(0.6745 * 3 * factor).epsilon(0.5));
    CHECK(std::fabs(double(test.found().sinceUnix) - 500) <= 5);
  }
}

TEST_CASE("an alarm is said once, and again when the kernel was as fast as before in between") {
  DriftTest test(kExpectedUs);
  CHECK(alarmOf(test, usual, 5, 1.3, 200) == 30);
  CHECK(alarmOf(test, usual, 5, 1.3, 10000, 200) == 0);
  CHECK(test.isSlow());
  CHECK(alarmOf(test, usual, 5, 1, 400, 20000) == 0);
  CHECK(!test.isSlow());
  CHECK(alarmOf(test, usual, 5, 1.3, 40, 30000) > 0);
}

TEST_CASE("fewer than 30 samples say nothing, and a kernel that becomes faster is no drift") {
  DriftTest test(kExpectedUs);
  CHECK(alarmOf(test, quiet, 1, 2, 29) == 0);
  DriftTest faster(kExpectedUs);
  CHECK(alarmOf(faster, usual, 1, 0.7, 1000) == 0);
}
