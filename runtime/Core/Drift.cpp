#include "runtime/Core/Drift.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

double median(float *values, int count) {
  std::nth_element(values, values + count / 2, values + count);
  return double(values[count / 2]);
}

// As the normal distribution has it: of the median of `count` samples with this median absolute deviation.
double errorOfMedian(double spread, int count) { return 1.4826 * 1.2533 * spread / std::sqrt(double(count)); }

} // namespace

int DriftTest::above(int window, double bound) const {
  int number = 0;
  for (int age = 0; age < window; ++age)
    number += double(recent(age).us) > bound;
  return number;
}

void DriftTest::describe(int window) {
  float values[kKept];
  for (int age = 0; age < window; ++age)
    values[age] = recent(age).us;
  drift.expectedUs = expectedUs;
  drift.samples = window;
  drift.medianUs = median(values, window);
  for (int age = 0; age < window; ++age)
    values[age] = std::fabs(values[age] - float(drift.medianUs));
  drift.spreadUs = median(values, window);
}

// Of all ends of what is kept, the one in which most samples more lie above the middle of both times than below.
int64_t DriftTest::beginOfSlow() const {
  const double middle = (expectedUs + drift.medianUs) / 2;
  const int kept = int(std::min<int64_t>(count, kKept));
  int lead = 0, most = 0, begin = 0;
  for (int age = 0; age < kept; ++age) {
    lead += double(recent(age).us) > middle ? 1 : -1;
    if (lead > most)
      most = lead, begin = age;
  }
  return recent(begin).unixSeconds;
}

bool DriftTest::add(double us, int64_t unixSeconds) {
  constexpr double kOnceInAMillion = 4.75; // standard errors
  samples[size_t(count++ % kKept)] = {float(us), uint32_t(unixSeconds)};
  if (count % kSamplesPerLook != 0)
    return false;
  const double bound = expectedUs * kTolerance;
  const Window &middle = kWindows[1];
  if (slow && count - foundAt >= middle.samples && above(middle.samples, bound) <= middle.samples / 2)
    slow = false, count = 0; // the longest window still has slow ones
  for (const Window &window : kWindows) {
    if (count < window.samples || above(window.samples, bound) < window.critical)
      continue;
    describe(window.samples);
    if (drift.medianUs - expectedUs < kOnceInAMillion * errorOfMedian(drift.spreadUs, window.samples))
      continue;
    const bool isNew = !slow;
    if (isNew)
      drift.sinceUnix = beginOfSlow(), foundAt = count;
    slow = true;
    return isNew;
  }
  return false;
}

} // namespace heddle
