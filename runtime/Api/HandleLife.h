// Owns the end of a handle: what it holds goes at once, its empty shell stays for a while, so that a use after the
// close is refused with a message and not a read of memory that is another's by now. Handles are move constructible and
// have a field `life`; what is moved out of one leaves it empty.
#pragma once

#include "runtime/Core/Status.h"

#include <atomic>

namespace heddle {

// Shells of one kind of handle that are kept; heddle.h names the number.
constexpr size_t kKeptShells = 1024;

class HandleLife {
public:
  HandleLife() = default;
  HandleLife(HandleLife &&) noexcept {} // the one who moves contents out decides about the life of both
  bool isOpen() const { return open.load(std::memory_order_acquire); }
  // False if it was over already.
  bool end() { return open.exchange(false, std::memory_order_acq_rel); }

private:
  std::atomic<bool> open{true};
};

// Null and closed handles are left alone.
template <class Handle> void closeHandle(Handle *handle) {
  if (!handle || !handle->life.end())
    return;
  {
    Handle contents(std::move(*handle));
  }
  static std::atomic<Handle *> shells[kKeptShells];
  static std::atomic<size_t> closed{0};
  delete shells[closed.fetch_add(1, std::memory_order_relaxed) % kKeptShells].exchange(handle,
                                                                                       std::memory_order_acq_rel);
}

// What checkOpen says.
Status notOpen(const char *function, const char *argument, bool isNull);

template <class Handle> Status checkOpen(const char *function, const char *argument, const Handle *handle) {
  if (handle && handle->life.isOpen())
    return {};
  return notOpen(function, argument, !handle);
}

} // namespace heddle
