// Owns what is said of an exception that the standard library threw where this project's functions return a Status.
#pragma once

#include "runtime/Core/Status.h"

#include <exception>
#include <new>

namespace heddle {

constexpr const char *kOutOfMemory = "out of memory: what was being made was given up";

inline Status statusOf(const std::exception &thrown) {
  return Status::internal(dynamic_cast<const std::bad_alloc *>(&thrown) ? kOutOfMemory : thrown.what());
}

// What f, which returns a Status or a Result, returns; internal if it throws. For threads that nobody catches
// exceptions of.
template <class F> auto withoutExceptions(const F &f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception &thrown) {
    return statusOf(thrown);
  }
}

} // namespace heddle
