// Memory that shows who writes beyond it.
#pragma once

#include "runtime/Device/Device.h"

#include <string>

namespace heddle {

/// Device memory for what kernels write, between two guards that they must not: all of it is poisoned with bytes 0xff,
/// which are NaN in every type of results. Aligned as DeviceBuffer is. Move-only, not thread safe.
class GuardedBuffer {
public:
  GuardedBuffer() = default;
  static Result<GuardedBuffer> allocate(const Device &device, const std::string &name, int64_t bytes);

  const std::string &name() const { return label; }
  void *data() const { return static_cast<std::byte *>(buffer.data()) + kGuardBytes; }
  int64_t bytes() const { return buffer.bytes() - 2 * kGuardBytes; }
  Status poison() { return buffer.fillBytes(kPoison); }
  Status copyFrom(const void *host, int64_t count) { return buffer.copyFrom(host, count, kGuardBytes); }
  Status copyTo(void *host, int64_t count, int64_t offset = 0) const {
    return buffer.copyTo(host, count, kGuardBytes + offset);
  }
  /// internal: something wrote into a guard; names the buffer and the side. Waits for the copies.
  Status checkGuards() const;

private:
  static constexpr uint8_t kPoison = 0xff;
  static constexpr int64_t kGuardBytes = 1 << 16;

  Status checkGuard(int64_t offset, const char *side) const;

  std::string label;
  DeviceBuffer buffer;
};

} // namespace heddle
