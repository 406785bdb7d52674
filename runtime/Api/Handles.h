//===- Handles.h - what the handles of the C interface hold -----------------===//
// Owns the handles of heddle.h and the way from a Status to a code with a message. Internal: for the files that define
// functions of the C interface, of this library and of the one that holds the compiler as well.
#pragma once

#include "runtime/Core/SafeText.h"
#include "runtime/Core/Thrown.h"
#include "runtime/Api/HandleLife.h"
#include "runtime/Api/KernelFinder.h"
#include "runtime/Core/VersionedStruct.h"
#include "runtime/Include/heddle.h"

#include <memory>
#include <string>

struct heddle_store {
  std::unique_ptr<heddle::KernelFinder> finder; // with at least one store
  heddle::HandleLife life{};
};
struct heddle_device {
  heddle::Device device;
  heddle::HandleLife life{};
};
struct heddle_kernel {
  heddle::FoundKernel found;
  heddle::HandleLife life{};
};
struct heddle_prepared {
  heddle::PreparedLaunch launch;
  heddle::HandleLife life{};
};

namespace heddle {

// Of this thread's last failing call.
std::string &lastMessage();

inline heddle_status report(const Status &status) {
  if (!status.isOk())
    lastMessage() = safeMessage(status.message());
  return heddle_status(status.code());
}

// Runs f, a function that returns a Status; nothing thrown gets past.
template <class F> heddle_status guarded(F &&f) noexcept {
  try {
    try {
      return report(f());
    } catch (const std::exception &error) {
      return report(statusOf(error));
    }
  } catch (...) { // most likely no memory, for a message either
    lastMessage().clear();
    return HEDDLE_INTERNAL;
  }
}

inline Status missing(const char *function, const char *argument) {
  return Status::invalidArgument(std::string(function) + ": " + argument + ": expected an address, got null");
}

} // namespace heddle
