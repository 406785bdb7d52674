// Owns the pools of an arena. The driver maps units of 32 MiB, whatever is asked of a pool (H200, driver 580), and moves those
// that nothing lies in to where a block needs them: a small block keeps all of one. So small blocks have a pool of their own;
// more pools than two were seen to hold no less. Who has them guards them.
#pragma once

#include "runtime/Device/Driver.h"

#include <array>

namespace heddle {

struct DeviceState;

class ArenaPools {
public:
  static constexpr std::array<int64_t, 2> kBlocksBelow = {int64_t(2) << 20, INT64_MAX};
  static constexpr int64_t kUnit = int64_t(32) << 20;

  // keptBytes: what all pools together keep when a stream is waited for. close() in any case.
  Status open(const DeviceState &state, uint64_t keptBytes);
  void close();

  // Returns how much more the pool holds.
  Result<int64_t> allocate(int64_t bytes, cuda::Stream stream, cuda::DevicePointer &address) const;
  Status free(cuda::DevicePointer address, cuda::Stream stream) const;
  // About so many bytes more, in whole units, that no block is in, for large ones; none where the GPU has none.
  void addSpare(int64_t bytes, cuda::Stream stream) const;
  Result<int64_t> heldBytes() const;
  // What is held beyond and not in use goes back, of large blocks first.
  Status trim(int64_t keepBytes) const;

private:
  Result<int64_t> heldBytes(cuda::MemPool pool) const;
  // Since it held so much. Then each pool keeps its share of what all may keep.
  Result<int64_t> growthOf(cuda::MemPool pool, int64_t before) const;
  Status shareKept() const;

  const Driver *driver = nullptr;
  uint64_t keptBytes = UINT64_MAX;
  std::array<cuda::MemPool, kBlocksBelow.size()> pools = {};
};

} // namespace heddle
