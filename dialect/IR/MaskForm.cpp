#include "dialect/IR/MaskForm.h"

#include <numeric>

namespace heddle::attn {

/// So that the order of texts is that of numbers.
static std::string padded(int64_t number) {
  std::string digits = std::to_string(number + (int64_t(1) << 60));
  return std::string(20 - digits.size(), '0') + digits;
}

std::string SizeBound::key() const {
  return (isLiteral() ? "" : (sign < 0 ? "-" : "+") + padded(argument)) + padded(constant);
}

bool ResidueClass::isFiner(const ResidueClass &other) const {
  return isKnown() && other.isKnown() && rate % other.rate == 0 && (!other.at || (at && *at % other.rate == *other.at));
}

bool ResidueClass::neverMeets(const ResidueClass &other) const {
  return at && other.at && (*at - *other.at) % std::gcd(rate, other.rate) != 0;
}

int64_t PullbackPlace::step() const {
  if (stride)
    return *stride;
  return blockSize ? std::max<int64_t>(1, blockSize.constant().value_or(1)) : 1;
}

} // namespace heddle::attn
