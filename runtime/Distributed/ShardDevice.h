// Owns the interface between a plan over ranks and the machine that a rank has: memory that it moves, and kernels of the
// pattern of parts that it runs. Queues take work in order: what is computed, what travels meanwhile, and small launches
// beside large ones.
#pragma once

#include "runtime/Core/CallShape.h"
#include "runtime/Distributed/RowPlace.h"

#include <vector>

namespace heddle {

enum class Queue : uint8_t { compute, link, aside };

// Used by one thread. Every call enqueues; where there are no queues it has happened on return.
class ShardDevice {
public:
  virtual ~ShardDevice() = default;

  // What tensors of calls must lie in, and at multiples of how many bytes (CallRules).
  virtual const char *memory() const { return "device memory"; }
  virtual int64_t alignment() const { return 16; }
  // Asked for each time that something is enqueued there by others: what follows knows of it.
  virtual void *stream(Queue queue) = 0;
  // What is given to it becomes part of a graph, which runs it later and maybe often: nothing may be waited for now.
  virtual bool isCaptured() const { return false; }
  // What `later` is given from now on begins when what `earlier` was given until now is over.
  virtual Status follow(Queue later, Queue earlier) = 0;
  // Behind what a queue was given and what is computed would keep from beginning, a message or launches aside: orders it where
  // `follow` does not.
  virtual Status letBegin(Queue) { return {}; }
  virtual Status clear(void *address, uint64_t bytes, Queue queue) = 0;
  virtual Status copy(const RowCopy &copy, Queue queue) = 0;
  // In any order, or at once: none writes what another one reads or writes.
  virtual Status copyAll(const std::vector<RowCopy> &copies, Queue queue) {
    for (const RowCopy &each : copies)
      if (Status status = copy(each, queue); !status.isOk())
        return status;
    return {};
  }
  // What lies at `from` is added to what lies at `to`.
  virtual Status add(const RowSum &sum, Queue queue) = 0;

  // Bytes of workspace of one launch.
  virtual Result<uint64_t> workspaceBytes(const KindText &kind, const heddle_attention_args &args) = 0;
  virtual Status launch(const KindText &kind, const heddle_attention_args &args, Queue queue) = 0;
};

} // namespace heddle
