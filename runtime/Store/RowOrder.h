// Owns the orders that make merging associative, commutative and idempotent: each is total, so the row that
// stays does not depend on who is merged into whom. Internal to runtime/Store.
#pragma once

#include "runtime/Core/FieldText.h"
#include "runtime/Core/KernelRecord.h"

#include <limits>
#include <tuple>

namespace heddle {

// Any total order of unequal rows, where nothing else decides.
template <class T> bool isLaterText(const T &a, const T &b) { return fieldText(a) > fieldText(b); }

// A tuned winner before an untuned one; of two tuned ones, which the key makes those of one problem, the faster, of two
// untuned ones the newer. A time of 0 was never measured and loses.
inline bool isBetter(const Winner &a, const Winner &b) {
  auto rank = [](const Winner &winner) {
    bool isMeasured = winner.isTuned && winner.medianUs > 0;
    double us = isMeasured ? winner.medianUs : std::numeric_limits<double>::infinity();
    return std::make_tuple(winner.isTuned != 0, -us, winner.createdUnix);
  };
  return rank(a) != rank(b) ? rank(a) > rank(b) : isLaterText(a, b);
}

// The newer row.
template <class T> bool isBetter(const T &a, const T &b) {
  return a.createdUnix != b.createdUnix ? a.createdUnix > b.createdUnix : isLaterText(a, b);
}

} // namespace heddle
