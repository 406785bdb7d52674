// Rings of slots in shared memory, of which one side fills a slot when it is empty and the other reads it when it is
// full; where a side stands in its ring; and records of shared memory as structs.
#pragma once

#include "Ptx/barriers.cuh"
#include "Ptx/memory.cuh"
#include "Shared/repeat.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// An object of at least eight bytes, a whole number of vector accesses.
template <class T> DEV T loadRecord(uint32_t address) {
  T record;
  if constexpr (sizeof(T) == 8) {
    ptx::loadShared8(address, reinterpret_cast<int32_t (&)[2]>(record));
  } else {
    static_assert(sizeof(T) % 16 == 0, "records are loaded in vectors");
    constexpr int kVectors = sizeof(T) / 16;
    auto &words = reinterpret_cast<int32_t (&)[kVectors][4]>(record);
    repeat<kVectors>([&](int i) { ptx::loadShared16(address + 16 * i, words[i]); });
  }
  return record;
}

template <class T> DEV void storeRecord(uint32_t address, const T &record) {
  if constexpr (sizeof(T) == 8) {
    auto &words = reinterpret_cast<const int32_t (&)[2]>(record);
    ptx::storeShared8(address, words[0], words[1]);
  } else {
    static_assert(sizeof(T) % 16 == 0, "records are stored in vectors");
    constexpr int kVectors = sizeof(T) / 16;
    auto &words = reinterpret_cast<const int32_t (&)[kVectors][4]>(record);
    repeat<kVectors>(
        [&](int i) { ptx::storeShared16(address + 16 * i, words[i][0], words[i][1], words[i][2], words[i][3]); });
  }
}

// The address of a record in an array that begins there.
template <class T> DEV uint32_t recordAt(uint32_t array, int32_t index) {
  return array + static_cast<uint32_t>(sizeof(T)) * index;
}

// Who speaks for a warp whose lanes read together. The last one: tools that watch for races remember it as the reader.
DEV bool isLastLane() { return threadIdx.x % 32 == 31; }

// This warp is done with something.
DEV void release(uint32_t barrier) {
  if (isLastLane())
    ptx::arrive(barrier);
}

// Where a side stands: a slot, and the parity of the phase that it waits for next.
template <int Slots> class RingCursor {
public:
  DEV explicit RingCursor(uint32_t parity) : place(0), phase(parity) {}
  DEV int32_t slot() const { return place; }
  DEV int32_t previousSlot() const { return (place == 0 ? Slots : place) - 1; }
  DEV uint32_t parity() const { return phase; }
  DEV uint32_t emptyParity() const { return phase; }
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

// A cursor in one register.
template <int Slots> class PackedRingCursor {
public:
  DEV explicit PackedRingCursor(uint32_t parity) : state(parity * kParity) {}
  DEV int32_t slot() const { return state & (kParity - 1); }
  DEV uint32_t parity() const { return state / kParity; }
  DEV uint32_t emptyParity() const { return parity(); }
  DEV void next() { advance(1); }
  // Goes on by at most Slots.
  DEV void advance(int32_t steps) {
    const int32_t place = slot() + steps;
    state = place >= Slots ? ((state & kParity) ^ kParity) | (place - Slots) : state + steps;
  }

private:
  static constexpr uint32_t kParity = 8;
  static_assert(Slots <= kParity, "the slot fits below the parity");
  uint32_t state;
};

// Slots that were filled, counted by those who fill them and read them too.
template <int Slots> class CountingCursor {
public:
  DEV explicit CountingCursor(uint32_t) : count(0) {}
  DEV int32_t slot() const { return count & 1; }
  DEV uint32_t parity() const { return count >> 1 & 1; }
  DEV uint32_t emptyParity() const { return parity() ^ 1; }
  DEV void next() { ++count; }
  DEV CountingCursor before() const {
    CountingCursor last = *this;
    --last.count;
    return last;
  }

private:
  static_assert(Slots == 2, "the last bit of the count is the slot");
  int32_t count;
};

constexpr int kBarrierStep = sizeof(Barrier);

// The barriers of a ring, of which those of the first slot lie at these addresses.
template <uint32_t Full, uint32_t Empty> struct Ring {
  static constexpr uint32_t kEmpty = Empty;
  DEV static uint32_t full(int32_t slot) { return Full + kBarrierStep * slot; }
  DEV static uint32_t empty(int32_t slot) { return Empty + kBarrierStep * slot; }

  DEV static void init(int32_t slot, uint32_t fillers, uint32_t readers) {
    ptx::initBarrier(full(slot), fillers);
    ptx::initBarrier(empty(slot), readers);
  }
};

// The first parity that a side waits for: slots are empty at the start.
constexpr uint32_t kReads = 0, kFills = 1;

// One side of a ring. `next` moves on to the slot behind.
template <int Stages, class Ring, template <int> class Cursor = RingCursor> class Pipeline : public Cursor<Stages> {
public:
  DEV explicit Pipeline(uint32_t side) : Cursor<Stages>(side) {}
  DEV explicit Pipeline(const Cursor<Stages> &place) : Cursor<Stages>(place) {}

  // The side that fills waits until nobody reads the slot any more.
  DEV void acquire() const { ptx::waitParity(empty(), this->emptyParity()); }
  // This warp has filled the slot.
  DEV void publish() const { heddle::release(full()); }
  DEV uint32_t full() const { return Ring::full(this->slot()); }

  // The side that reads calls these.
  DEV void waitFull() const { ptx::waitParity(full(), this->parity()); }
  DEV uint32_t empty() const { return Ring::empty(this->slot()); }
  // This warp is done with the slot.
  DEV void release() const { heddle::release(empty()); }
  DEV void releasePrevious() const { heddle::release(Ring::empty(this->previousSlot())); }

  // The same slot of another ring, which goes round with this one.
  template <class Other> DEV Pipeline<Stages, Other, Cursor> of(Other) const {
    return Pipeline<Stages, Other, Cursor>(static_cast<const Cursor<Stages> &>(*this));
  }
  // The slot before, of a ring that is counted.
  DEV Pipeline before() const { return Pipeline(Cursor<Stages>::before()); }

  // Further on by so many slots.
  DEV Pipeline after(int32_t steps) const {
    Pipeline later = *this;
    later.advance(steps);
    return later;
  }
};

} // namespace heddle
