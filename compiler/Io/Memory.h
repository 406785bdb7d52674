// Owns what is said where memory ends: before something large is made whose size is known, and after an allocation
// failed.
#pragma once

#include "runtime/Core/Status.h"
#include <cstdint>

namespace heddle {

// Bytes that this process may still take: the least of what the machine has available (with swap), its control groups
// allow and its limit of addresses (ulimit -v) leaves. INT64_MAX where the system says nothing.
int64_t availableMemory();

// "12.9 GB", three digits.
std::string memoryText(double bytes);

// unavailable if `bytes` for `what` are more than there are: with both numbers and what would work.
Status checkMemory(const std::string &what, double bytes, const std::string &advice);

// unavailable, for after std::bad_alloc: what this process holds, what is left and what would work.
Status outOfMemory(const std::string &advice);

} // namespace heddle
