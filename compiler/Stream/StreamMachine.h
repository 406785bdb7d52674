// Owns the interface between a call that goes through a sequence piece by piece and the machine that computes it: memory,
// rows that come into it, and results that leave it.
#pragma once

#include "compiler/Stream/RowSource.h"
#include "runtime/Distributed/ShardDevice.h"

namespace heddle {

class StreamMachine {
public:
  virtual ~StreamMachine() = default;

  virtual ShardDevice &shard() = 0;
  virtual const RowSource &source() const = 0;
  /// As long as the machine. unavailable: there is not so much.
  virtual Result<char *> allocate(uint64_t bytes) = 0;
  /// From memory of the host, before anything is computed.
  virtual Status put(const void *from, uint64_t bytes, char *to) = 0;
  /// Rows of the source into memory of the machine, [batch, rows, heads, dim] without gaps.
  Status give(const RowBlock &block, char *to, Queue queue) {
    given += source().bytesOf(block);
    return fill(block, to, queue);
  }
  int64_t givenBytes() const { return given; }
  /// Waits for what is computed.
  virtual Status finish() = 0;
  /// For after finish(): from memory of the machine to that of the host.
  virtual Status take(const char *from, uint64_t bytes, void *to) = 0;

protected:
  virtual Status fill(const RowBlock &block, char *to, Queue queue) = 0;

private:
  int64_t given = 0;
};

} // namespace heddle
