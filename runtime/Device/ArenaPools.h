//===- ArenaPools.h - pools of the driver, by the size of blocks ------------===//
// Owns the pools of an arena. The driver maps units of 32 MiB, which it moves to where a block needs them once nothing lies in
// them: a small block keeps all of one. So blocks that are smaller have pools of their own. Who has them guards them.
#pragma once

#include "runtime/Device/Driver.h"

#include <array>

namespace heddle {

struct DeviceState;

class ArenaPools {
public:
  static constexpr int64_t kUnitBytes = int64_t(32) << 20;
  static constexpr std::array<int64_t, 3> kBlocksBelow = {int64_t(2) << 20, kUnitBytes, INT64_MAX};

  // keptBytes: what all pools together keep when a stream is waited for. close() in any case.
  Status open(const DeviceState &state, uint64_t keptBytes);
  void close();

  // What the driver has to map for a block of so many bytes, as far as sums of its pool tell: 0 where so much is free in it.
  Result<int64_t> missingBytes(int64_t bytes) const;
  // Returns how much more the pool holds.
  Result<int64_t> allocate(int64_t bytes, cuda::Stream stream, cuda::DevicePointer &address);
  Status free(cuda::DevicePointer address, int64_t bytes, cuda::Stream stream);
  Result<int64_t> heldBytes() const;
  // What is held beyond and not in use goes back, of large blocks first.
  Status trim(int64_t keepBytes) const;

private:
  struct Pool {
    cuda::MemPool handle = nullptr;
    int64_t usedBytes = 0;
  };

  static size_t indexOf(int64_t bytes);
  Result<int64_t> heldBytes(const Pool &pool) const;
  // Since it held so much. Then each pool keeps its share of what all may keep.
  Result<int64_t> growthOf(const Pool &pool, int64_t before) const;
  Status shareKept() const;

  const Driver *driver = nullptr;
  uint64_t keptBytes = UINT64_MAX;
  std::array<Pool, kBlocksBelow.size()> pools;
};

} // namespace heddle
