// Owns what the definitions of scores are evaluated in to know their derivatives: the rules of differentiation, op by
// op. At a kink the side that is taken counts.
#pragma once

#include <cmath>

namespace heddle::oracle {

/// A number, and its derivative with respect to one of those that it was made of.
struct Dual {
  double value, slope;

  Dual(double value = 0, double slope = 0) : value(value), slope(slope) {}
  explicit operator double() const { return value; }
};

inline Dual operator-(Dual x) { return {-x.value, -x.slope}; }
inline Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }
inline Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.slope - y.slope}; }
inline Dual operator*(Dual x, Dual y) { return {x.value * y.value, x.slope * y.value + x.value * y.slope}; }
inline Dual operator/(Dual x, Dual y) {
  return {x.value / y.value, (x.slope * y.value - x.value * y.slope) / (y.value * y.value)};
}
inline bool operator<(Dual x, Dual y) { return x.value < y.value; }

inline Dual abs(Dual x) { return x.value < 0 ? -x : x; }
inline Dual ceil(Dual x) { return std::ceil(x.value); }
inline Dual floor(Dual x) { return std::floor(x.value); }
inline Dual cos(Dual x) { return {std::cos(x.value), -std::sin(x.value) * x.slope}; }
inline Dual sin(Dual x) { return {std::sin(x.value), std::cos(x.value) * x.slope}; }
inline Dual tanh(Dual x) {
  const double inverse = 1 / std::cosh(x.value); // 1 - tanh^2 without a difference
  return {std::tanh(x.value), inverse * inverse * x.slope};
}
inline Dual erf(Dual x) {
  constexpr double kTwoOverRootPi = 1.12837916709551257390;
  return {std::erf(x.value), kTwoOverRootPi * std::exp(-x.value * x.value) * x.slope};
}
inline Dual exp(Dual x) { return {std::exp(x.value), std::exp(x.value) * x.slope}; }
inline Dual exp2(Dual x) { return {std::exp2(x.value), std::exp2(x.value) * std::log(2.0) * x.slope}; }
inline Dual expm1(Dual x) { return {std::expm1(x.value), std::exp(x.value) * x.slope}; }
inline Dual log(Dual x) { return {std::log(x.value), x.slope / x.value}; }
inline Dual log1p(Dual x) { return {std::log1p(x.value), x.slope / (1 + x.value)}; }
inline Dual log2(Dual x) { return {std::log2(x.value), x.slope / (x.value * std::log(2.0))}; }
inline Dual sqrt(Dual x) { return {std::sqrt(x.value), x.slope / (2 * std::sqrt(x.value))}; }
inline Dual fma(Dual x, Dual y, Dual z) { return x * y + z; }
/// Terms whose number does not vary say nothing: the logarithm of a negative base is none of them.
inline Dual pow(Dual x, Dual y) {
  const double power = std::pow(x.value, y.value);
  const double alongBase = x.slope == 0 ? 0 : y.value * std::pow(x.value, y.value - 1) * x.slope;
  return {power, alongBase + (y.slope == 0 ? 0 : std::log(x.value) * power * y.slope)};
}

} // namespace heddle::oracle
