// A rank that computes on processors.
#pragma once

#include "compiler/Library/CompiledPattern.h"
#include "runtime/Distributed/ShardDevice.h"

namespace heddle {

/// Everything has happened on return: there are no queues.
class HostShard : public ShardDevice {
public:
  /// `part` is the pattern of parts.
  HostShard(std::shared_ptr<CompiledPattern> part, int32_t threads) : part(std::move(part)), threads(threads) {}

  const char *memory() const override { return "host memory"; }
  int64_t alignment() const override { return 1; }
  void *stream(Queue) override { return nullptr; }
  Status follow(Queue, Queue) override { return {}; }
  Status clear(void *address, uint64_t bytes, Queue) override;
  Status copy(const RowCopy &copy, Queue) override;
  Status add(const RowSum &sum, Queue) override;
  Result<uint64_t> workspaceBytes(const KindText &, const heddle_attention_args &) override { return uint64_t(0); }
  Status launch(const KindText &kind, const heddle_attention_args &args, Queue) override;

private:
  std::shared_ptr<CompiledPattern> part;
  int32_t threads;
};

} // namespace heddle
