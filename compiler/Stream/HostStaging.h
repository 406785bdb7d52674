// Owns two pieces of the host's memory that take turns: one is read or written by this program while the GPU copies the
// other one.
#pragma once

#include "compiler/Stream/PinnedMemory.h"

#include <functional>
#include <optional>

namespace heddle {

class HostStaging {
public:
  static constexpr uint64_t kPieceBytes = uint64_t(64) << 20;

  explicit HostStaging(const Device &device) : device(device) {}
  /// Waits for the copies that are under way.
  ~HostStaging();
  HostStaging(const HostStaging &) = delete;
  HostStaging &operator=(const HostStaging &) = delete;

  /// `write` fills so many bytes, which are copied behind what the stream has to do; returns before that is done.
  Status give(uint64_t bytes, const std::function<Status(char *piece)> &write, char *onDevice, cuda::Stream stream);
  /// Ends when all bytes are there.
  Status take(const char *onDevice, uint64_t bytes, char *to, cuda::Stream stream);

  /// The first piece, once there was something to copy.
  const PinnedMemory *memory() const { return turns[0].memory ? &*turns[0].memory : nullptr; }
  uint64_t bytes() const;

private:
  struct Turn {
    std::optional<PinnedMemory> memory;
    std::optional<DeviceEvent> copied;
    bool isUnderWay = false;
  };
  /// The other piece, of at least so many bytes and free.
  Result<Turn *> next(uint64_t bytes);
  Status wait(Turn &turn) const;
  Status copy(bool isToDevice, char *onDevice, Turn &turn, uint64_t bytes, cuda::Stream stream) const;

  Device device;
  Turn turns[2];
  int last = 1;
};

} // namespace heddle
