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

// Its code; counts it and keeps its message if it is none of success.
heddle_status report(const Status &status);

// In a handler: of what was thrown.
heddle_status reportThrown() noexcept;

// Runs f, a function that returns a Status; nothing thrown gets past.
template <class F> heddle_status guardedLaunch(F &&f) noexcept {
  try {
    const Status status = f();
    return status.isOk() ? HEDDLE_OK : report(status);
  } catch (...) {
    return reportThrown();
  }
}

// The same for calls that are not made at every step of a program: in one place, which is smaller.
heddle_status guardedBy(Status (*call)(const void *f), const void *f) noexcept;
template <class F> heddle_status guarded(const F &f) noexcept {
  return guardedBy([](const void *erased) -> Status { return (*static_cast<const F *>(erased))(); }, &f);
}

Status missing(const char *function, const char *argument);

} // namespace heddle
