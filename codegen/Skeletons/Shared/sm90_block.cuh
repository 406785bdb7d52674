// What blocks of Hopper kernels have in common: places in shared memory, columns of tiles, cursors of rings, and words
// that all lanes of a warp share.
#pragma once

#include "Shared/sm90_layout.cuh"

namespace heddle {

using namespace sm90;

constexpr int kWarpgroupThreads = 128;
constexpr int kColumnElements = kColumnRowBytes / kElementBytes;
template <int Dim> constexpr int kColumns = columnsOf(Dim, kElementBytes);

// Places in shared memory are constants. The driver reserves the first 1024 bytes of every block; verified at entry.
constexpr uint32_t kSharedBase = 1024;

extern __shared__ __align__(1024) unsigned char sharedMemory[];

DEV bool placesAreRight() { return ptx::sharedAddress(sharedMemory) == kSharedBase; }

// A position in a ring; the parity is that of the phase to wait for.
template <int Slots> class RingCursor {
public:
  DEV explicit RingCursor(uint32_t parity) : place(0), phase(parity) {}
  DEV int32_t slot() const { return place; }
  DEV uint32_t parity() const { return phase; }
  DEV void next() {
    if (++place == Slots) {
      place = 0;
      phase ^= 1;
    }
  }

private:
  int32_t place;
  uint32_t phase;
};

// The same in one register.
template <int Slots> class PackedRingCursor {
public:
  DEV explicit PackedRingCursor(uint32_t parity) : state(parity * kParity) {}
  DEV int32_t slot() const { return state & (kParity - 1); }
  DEV uint32_t parity() const { return state / kParity; }
  DEV void next() { advance(1); }
  // By at most Slots.
  DEV void advance(int32_t steps) {
    const int32_t place = slot() + steps;
    state = place >= Slots ? ((state & kParity) ^ kParity) | (place - Slots) : state + steps;
  }
  DEV PackedRingCursor after(int32_t steps) const {
    PackedRingCursor later = *this;
    later.advance(steps);
    return later;
  }

private:
  static constexpr uint32_t kParity = 8;
  static_assert(Slots <= kParity, "the slot fits below the parity");
  uint32_t state;
};

// A word that is the same in all lanes, now known to be: the reduction's result is a uniform register. What control
// flow and addresses derive from it stays uniform, and mma follow each other without moves between register files.
DEV int32_t uniform(int32_t word) { return __reduce_or_sync(0xffffffffu, word); }

// Who speaks for a warp whose lanes read together. The last one: tools that watch for races remember it as the reader.
DEV bool isLastLane() { return threadIdx.x % 32 == 31; }

} // namespace heddle
