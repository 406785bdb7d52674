#include "dialect/Geometry/Period.h"

#include <numeric>

namespace heddle::attn {

int64_t choosePeriod(std::vector<int64_t> divisors, int64_t step, int64_t extent) {
  constexpr double kRectangles = 64; // at a bend that turns meet one by one, as counted
  const auto meetsAll = [&](int64_t divisor) { return step % divisor == 0; };
  divisors.erase(std::remove_if(divisors.begin(), divisors.end(), meetsAll), divisors.end());
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  auto met = [](int64_t divisor, int64_t positions) { return double(positions) / double(divisor); };
  double outside = 0, least = 0;
  for (int64_t divisor : divisors)
    outside += met(divisor, extent);
  int64_t positions = step, best = extent;
  least = outside; // in one turn
  for (size_t included = 0; included <= divisors.size(); ++included) {
    if (included > 0) {
      const int64_t fresh = divisors[included - 1] / std::gcd(positions, divisors[included - 1]);
      if (positions >= extent / fresh)
        break;
      positions *= fresh;
      outside -= met(divisors[included - 1], extent);
    }
    double inside = 0;
    for (size_t i = 0; i < included; ++i)
      inside += met(divisors[i], positions);
    const double cost = (1 + std::min(inside, double(positions / step))) * (1 + kRectangles * std::max(outside, 0.0));
    if (cost <= least) {
      least = cost;
      best = positions;
    }
  }
  return std::max<int64_t>(best / step, 1);
}

} // namespace heddle::attn
