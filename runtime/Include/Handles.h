//===- Handles.h - what the handles of the C interface hold -----------------===//
// Owns the handles of heddle.h and the way from a Status to a code with a message. Internal: for the files that define
// functions of the C interface, of this library and of the one that holds the compiler as well.
#ifndef HEDDLE_RUNTIME_INCLUDE_HANDLES_H
#define HEDDLE_RUNTIME_INCLUDE_HANDLES_H

#include "runtime/Include/KernelFinder.h"
#include "runtime/Include/heddle.h"

#include <string>

struct heddle_store {
  heddle::KernelFinder finder; // with at least one store
};
struct heddle_device {
  heddle::Device device;
};
struct heddle_kernel {
  heddle::FoundKernel found;
};
struct heddle_prepared {
  heddle::PreparedLaunch launch;
};

namespace heddle {

// Of this thread's last failing call.
std::string &lastMessage();

inline heddle_status report(const Status &status) {
  if (!status.isOk())
    lastMessage() = status.message();
  return heddle_status(status.code());
}

// Runs f, a function that returns a Status; nothing thrown gets past.
template <class F> heddle_status guarded(F &&f) noexcept {
  try {
    return report(f());
  } catch (...) { // most likely no memory, for a message either
    return HEDDLE_INTERNAL;
  }
}

inline Status missing(const char *function, const char *argument) {
  return Status::invalidArgument(std::string(function) + ": " + argument + ": expected an address, got null");
}

// invalidArgument unless the caller's struct reaches as far as T does here.
template <class T> Status checkStructSize(const char *function, const T &given) {
  if (given.struct_size >= sizeof(T))
    return {};
  return Status::invalidArgument(std::string(function) + ": struct_size: expected at least " + std::to_string(sizeof(T)) + ", got " +
                                 std::to_string(given.struct_size));
}

} // namespace heddle

#endif
