#include "compiler/Stream/HostStaging.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

constexpr const char *kWhat = "streamed call";

} // namespace

HostStaging::~HostStaging() {
  for (Turn &turn : turns)
    static_cast<void>(wait(turn));
}

Status HostStaging::wait(Turn &turn) const {
  if (!turn.isUnderWay)
    return {};
  turn.isUnderWay = false;
  return turn.copied->synchronize();
}

Result<HostStaging::Turn *> HostStaging::next(uint64_t bytes) {
  Turn &turn = turns[last = 1 - last];
  HEDDLE_TRY(wait(turn));
  if (!turn.memory || turn.memory->bytes() < bytes) {
    HEDDLE_ASSIGN(turn.memory, PinnedMemory::allocate(device, std::max(bytes, kPieceBytes)));
  }
  if (!turn.copied) {
    HEDDLE_ASSIGN(turn.copied, DeviceEvent::create(device));
  }
  return &turn;
}

Status HostStaging::copy(bool isToDevice, char *onDevice, Turn &turn, uint64_t bytes, cuda::Stream stream) const {
  const DeviceState &state = *device.state();
  const auto place = cuda::DevicePointer(reinterpret_cast<uintptr_t>(onDevice));
  char *piece = turn.memory->data();
  {
    ContextScope scope(state);
    HEDDLE_TRY(scope.status(kWhat));
    const Driver &driver = *state.driver;
    HEDDLE_TRY(isToDevice ? driver.check(driver.memcpyToDevice(place, piece, bytes, stream), kWhat, "cuMemcpyHtoDAsync")
                          : driver.check(driver.memcpyToHost(piece, place, bytes, stream), kWhat, "cuMemcpyDtoHAsync"));
  }
  HEDDLE_TRY(turn.copied->record(stream));
  turn.isUnderWay = true;
  return {};
}

Status HostStaging::give(uint64_t bytes, const std::function<Status(char *)> &write, char *onDevice,
                         cuda::Stream stream) {
  HEDDLE_ASSIGN(Turn * turn, next(bytes));
  HEDDLE_TRY(write(turn->memory->data()));
  return copy(true, onDevice, *turn, bytes, stream);
}

Status HostStaging::take(const char *onDevice, uint64_t bytes, char *to, cuda::Stream stream) {
  Turn *before = nullptr; // under way, with what goes to [place, place + size)
  char *place = to;
  uint64_t size = 0;
  for (uint64_t done = 0; done < bytes || before;) {
    Turn *turn = nullptr;
    const uint64_t part = std::min(kPieceBytes, bytes - done);
    if (part) {
      HEDDLE_ASSIGN(turn, next(part));
      HEDDLE_TRY(copy(false, const_cast<char *>(onDevice) + done, *turn, part, stream));
    }
    if (before) {
      HEDDLE_TRY(wait(*before));
      std::memcpy(place, before->memory->data(), size);
    }
    before = turn;
    place = to + done;
    size = part;
    done += part;
  }
  return {};
}

uint64_t HostStaging::bytes() const {
  uint64_t sum = 0;
  for (const Turn &turn : turns)
    sum += turn.memory ? turn.memory->bytes() : 0;
  return sum;
}

} // namespace heddle
