#include "runtime/Api/Handles.h"

#include "runtime/Core/Counters.h"

namespace heddle {

heddle_status report(const Status &status) {
  if (!status.isOk()) {
    Counters::get().refusals[int(status.code())].add();
    lastMessage() = safeMessage(status.message());
  }
  return heddle_status(status.code());
}

heddle_status reportThrown() noexcept {
  try {
    try {
      throw;
    } catch (const std::exception &error) {
      return report(statusOf(error));
    }
  } catch (...) { // most likely no memory, for a message either
    lastMessage().clear();
    Counters::get().refusals[HEDDLE_INTERNAL].add();
    return HEDDLE_INTERNAL;
  }
}

heddle_status guardedBy(Status (*call)(const void *f), const void *f) noexcept {
  try {
    return report(call(f));
  } catch (...) {
    return reportThrown();
  }
}

Status missing(const char *function, const char *argument) {
  return Status::invalidArgument(std::string(function) + ": " + argument + ": expected an address, got null");
}

Status notOpen(const char *function, const char *argument, bool isNull) {
  return Status::invalidArgument(std::string(function) + ": " + argument +
                                 (isNull ? ": expected an address, got null" : ": this handle was closed"));
}

} // namespace heddle
