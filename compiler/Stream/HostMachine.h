#pragma once

#include "compiler/Library/HostShard.h"
#include "compiler/Stream/StreamMachine.h"

#include <deque>

namespace heddle {

/// Everything has happened on return.
class HostMachine final : public StreamMachine {
public:
  /// `part` is the pattern of parts; the source outlives the machine.
  HostMachine(std::shared_ptr<CompiledPattern> part, const RowSource &source, int32_t threads = 0)
      : onHost(std::move(part), threads), rows(source) {}

  ShardDevice &shard() override { return onHost; }
  const RowSource &source() const override { return rows; }
  Result<char *> allocate(uint64_t bytes) override;
  Status put(const void *from, uint64_t bytes, char *to) override {
    return take(static_cast<const char *>(from), bytes, to);
  }
  Status finish() override { return {}; }
  Status take(const char *from, uint64_t bytes, void *to) override;

protected:
  Status fill(const RowBlock &block, char *to, Queue) override { return rows.read(block, to); }

private:
  HostShard onHost;
  const RowSource &rows;
  std::deque<std::vector<char>> memory;
};

} // namespace heddle
