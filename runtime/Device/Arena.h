// Owns the sizes of what was given out of the pools of a GPU, and when memory goes back. What pools do is the driver's: reuse
// in the order of streams and across them. The promises are those of runtime/Include/heddle_arena.h.
#pragma once

#include "runtime/Core/Counters.h"
#include "runtime/Device/ArenaPools.h"
#include "runtime/Device/StreamEnds.h"

#include <map>
#include <mutex>

namespace heddle {

struct ArenaOptions {
  int64_t limitBytes = 0;     // 0: none
  int64_t highWaterBytes = 0; // 0: all is kept
  int32_t (*pressure)(void *user, uint64_t bytes) = nullptr;
  void *user = nullptr;
};

struct ArenaStats {
  int64_t blocks = 0, usedBytes = 0, usedPeakBytes = 0, heldBytes = 0, heldPeakBytes = 0;
  int64_t takes = 0, refusals = 0, trims = 0, pressures = 0;
  double fragmentation() const { return heldPeakBytes > 0 ? 1 - double(usedPeakBytes) / double(heldPeakBytes) : 0; }
};

// Thread safe.
class Arena {
public:
  static Result<std::unique_ptr<Arena>> open(const Device &device, const ArenaOptions &options);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  Result<void *> take(cuda::Stream stream, uint64_t bytes);
  Status give(cuda::Stream stream, void *memory);
  Status trim(uint64_t keepBytes);
  Result<ArenaStats> stats();

private:
  Arena(const Device &device, const ArenaOptions &options) : device(device), options(options) {}
  Status setUp();
  bool isBeyondLimit(int64_t bytes) const;
  // unavailable: the limit, or the GPU.
  Result<void *> tryToTake(cuda::Stream stream, int64_t bytes);
  // As of the pools; where they would hold more than ever although blocks came back, after releaseRest(). What then is more
  // than ever is so by where blocks lie: the pools get some on top, so that such chance makes them grow once, not ever again.
  Result<cuda::DevicePointer> allocate(std::unique_lock<std::mutex> &lock, cuda::Stream stream, int64_t bytes);
  // Waits without the lock for the work that blocks came back behind; then what is not in use goes back to the GPU.
  Status releaseRest(std::unique_lock<std::mutex> &lock);
  void note(cuda::Stream stream);
  Status refusal(int64_t bytes, const Status &why);

  const Device device;
  const ArenaOptions options;
  ArenaPools pools;
  Count takes, refusals, trims, pressures;
  Level used;
  std::mutex mutex; // guards what follows
  std::map<cuda::DevicePointer, int64_t> blocks;
  std::atomic<int64_t> promised{0}; // to calls that wait
  StreamEnds ends;                  // behind the blocks that came back
  bool isSomethingBack = false;     // since releaseRest()
  int64_t heldPeak = 0;             // at the end of a call
};

} // namespace heddle
