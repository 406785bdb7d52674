#include "compiler/Measure/GuardedBuffer.h"

#include <algorithm>
#include <vector>

namespace heddle {

Result<GuardedBuffer> GuardedBuffer::allocate(const Device &device, const std::string &name, int64_t bytes) {
  GuardedBuffer guarded;
  guarded.label = name;
  HEDDLE_ASSIGN(guarded.buffer, DeviceBuffer::allocate(device, bytes + 2 * kGuardBytes));
  HEDDLE_TRY(guarded.poison());
  return guarded;
}

Status GuardedBuffer::checkGuards() const {
  HEDDLE_TRY(checkGuard(0, "before"));
  return checkGuard(kGuardBytes + bytes(), "behind");
}

Status GuardedBuffer::checkGuard(int64_t offset, const char *side) const {
  std::vector<uint8_t> guard(kGuardBytes);
  HEDDLE_TRY(buffer.copyTo(guard.data(), kGuardBytes, offset));
  const auto written = std::find_if(guard.begin(), guard.end(), [](uint8_t byte) { return byte != kPoison; });
  if (written == guard.end())
    return Status();
  const int64_t place = written - guard.begin();
  return Status::internal("the kernel wrote outside of '" + label +
                          "': " + std::to_string(offset == 0 ? kGuardBytes - place : place) + " bytes " + side + " it");
}

} // namespace heddle
