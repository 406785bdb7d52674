//===- ArenaPools.h - pools of the driver, by the size of blocks ------------===//
// Owns the pools of an arena. The driver maps memory in chunks of 32 MiB, or of a block that is larger, and a chunk goes
// back whole: a small block that lies where a large one was would hold all of it. So blocks of different sizes have pools
// of their own.
#pragma once

#include "runtime/Device/Driver.h"

#include <array>

namespace heddle {

struct DeviceState;

class ArenaPools {
public:
  static constexpr int64_t kChunkBytes = int64_t(32) << 20;
  static constexpr std::array<int64_t, 3> kBlocksBelow = {int64_t(2) << 20, kChunkBytes, INT64_MAX};

  // keptBytes: what each pool keeps when a stream is waited for. close() in any case.
  Status open(const DeviceState &state, uint64_t keptBytes);
  void close(const Driver &driver);

  Status allocate(const Driver &driver, int64_t bytes, cuda::Stream stream, cuda::DevicePointer &address) const;
  Result<int64_t> heldBytes(const Driver &driver) const;
  // What is held beyond and not in use goes back, of large blocks first.
  Status trim(const Driver &driver, int64_t keepBytes) const;

private:
  Result<int64_t> heldBytes(const Driver &driver, cuda::MemPool pool) const;

  std::array<cuda::MemPool, kBlocksBelow.size()> pools = {};
};

} // namespace heddle
