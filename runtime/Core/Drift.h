// Owns the test of sampled times against a time that is known. Its errors are bounded for any noise whose samples are
// independent: a window of samples is slow if so many of them lie above the bound that a fair coin would give as many
// heads once in three million times. Three windows are looked at: a look is wrong at most once in a million.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle {

// What was found.
struct Drift {
  double expectedUs = 0;
  double medianUs = 0; // of the shortest window that shows it
  double spreadUs = 0; // median absolute deviation from that
  int64_t samples = 0; // of the window
  int64_t sinceUnix = 0;
  double factor() const { return medianUs / expectedUs; }
};

// For one thread at a time.
class DriftTest {
public:
  // Times up to so much longer than expected are no drift.
  static constexpr double kTolerance = 1.02;
  static constexpr int kSamplesPerLook = 10;
  struct Window {
    int samples, critical;
  };
  // Slowdowns of 30, 10 and 5% are found within 40, 100 and 190 samples where the noise is not as large as they are.
  static constexpr std::array<Window, 3> kWindows = {{{30, 29}, {90, 69}, {180, 124}}};

  explicit DriftTest(double expectedUs) : expectedUs(expectedUs) {}

  // True: from this sample on it is slow, and was not before.
  bool add(double us, int64_t unixSeconds);
  // Ends when the median of 90 samples since is within the bound again.
  bool isSlow() const { return slow; }
  // While it is slow; later that of the last time.
  const Drift &found() const { return drift; }
  double expected() const { return expectedUs; }

private:
  static constexpr int kKept = kWindows.back().samples;
  struct Sample {
    float us;
    uint32_t unixSeconds;
  };

  const Sample &recent(int age) const { return samples[std::size_t((count - 1 - age) % kKept)]; }
  int above(int window, double bound) const;
  void describe(int window);
  int64_t beginOfSlow() const;

  double expectedUs;
  int64_t count = 0, foundAt = 0; // since the last drift ended
  bool slow = false;
  Drift drift;
  std::array<Sample, kKept> samples;
};

} // namespace heddle
