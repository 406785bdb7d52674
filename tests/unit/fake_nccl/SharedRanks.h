//===- SharedRanks.h - ranks that are processes -----------------------------===//
// Owns what ranks of several processes share, where HEDDLE_FAKE_NCCL_FOLDER names a folder: a file for each unique id,
// mapped into all of them, with who has come and a ring of bytes for each way from rank to rank. Nobody locks anything
// that another process needs, so that a process may end or stop between any two calls.
#ifndef HEDDLE_TESTS_UNIT_FAKE_NCCL_SHAREDRANKS_H
#define HEDDLE_TESTS_UNIT_FAKE_NCCL_SHAREDRANKS_H

#include "FakeState.h"

#include <atomic>
#include <string>

namespace heddle::fakenccl {

constexpr int kMostShared = 8;
constexpr size_t kRingBytes = size_t(1) << 20; // pages that nobody writes take no memory

// From one rank to another. What was written and not taken lies in the ring.
struct SharedWay {
  std::atomic<uint64_t> written, taken;
  char ring[kRingBytes];
};

struct SharedFile {
  std::atomic<int> hasCome[kMostShared];
  SharedWay ways[kMostShared][kMostShared]; // by sender and receiver
};

class SharedRanks {
public:
  // Of a new group, in the folder that the environment names; "" where it names none.
  static std::string newPath();
  // Null: the file cannot be mapped.
  static std::shared_ptr<SharedRanks> join(const std::string &path, int rank);
  SharedRanks(const SharedRanks &) = delete;
  ~SharedRanks();

  bool isComplete(int ranks) const;
  // Moves what can be moved of the operation; true: all of it was sent and taken. A message of another length than the
  // one that is waited for sets `error`.
  bool move(int rank, Operation &operation, nccl::Code &error);

private:
  SharedRanks(SharedFile *file, std::string path) : file(file), path(std::move(path)) {}
  bool send(SharedWay &way, Message &message);
  bool receive(SharedWay &way, Message &message, nccl::Code &error);

  SharedFile *file;
  const std::string path;
};

// One message to every other rank, and one from each.
void spreadGather(int rank, int ranks, Operation &operation);

} // namespace heddle::fakenccl

#endif
