//===- FakeState.h - the inside of the stand-in for NCCL --------------------===//
// Owns who has come, and how messages meet. Everything is guarded by one lock; who waits looks again and again.
#ifndef HEDDLE_TESTS_UNIT_FAKE_NCCL_FAKESTATE_H
#define HEDDLE_TESTS_UNIT_FAKE_NCCL_FAKESTATE_H

#include "../fake_cuda/SpinLock.h"
#include "FakeNccl.h"
#include "runtime/Distributed/NcclApi.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace heddle::fakenccl { // the driver's stand-in has the same names

struct Group;
class SharedRanks;

// What a communicator has in common with the one that was split from it.
struct Family {
  int count = 0;                            // operations that were begun
  std::set<std::pair<bool, int>> connected; // to which ranks it has sent (true), and from which it has received
};

struct Message {
  int peer;
  const void *from; // of a send
  void *to;         // of a receive
  size_t bytes;
  size_t moved = 0; // between processes (SharedRanks.h)
  uint64_t end = 0; // of it, among all that went this way
};

// What one rank does in one go.
struct Operation {
  std::vector<Message> sends, receives;
  bool isGather = false;
  const void *own = nullptr; // of a gather
  void *all = nullptr;
  size_t bytes = 0;
  size_t open = 0;               // messages that have not met theirs
  std::vector<void *> held = {}; // in streams of the driver
};

} // namespace heddle::fakenccl

namespace heddle::nccl {
struct CommunicatorStruct {
  std::string id;
  std::shared_ptr<heddle::fakenccl::Group> group;
  int rank, ranks, device;
  bool isBlocking;
  std::shared_ptr<heddle::fakenccl::SharedRanks> shared = nullptr; // of ranks that are processes
  Code error = kSuccess;
  std::shared_ptr<heddle::fakenccl::Family> family = std::make_shared<heddle::fakenccl::Family>();
  bool sharesConnections = false; // with those that are split from it
  bool isSplit = false;
  Communicator child = nullptr;
  int64_t gathers = 0;
  std::shared_ptr<std::atomic<int>> graphs = std::make_shared<std::atomic<int>>(0); // that hold work of it
  bool isFinalized = false;
  std::deque<std::shared_ptr<heddle::fakenccl::Operation>> operations; // the first is under way
};
} // namespace heddle::nccl

namespace heddle::fakenccl {

struct Posted {
  nccl::Communicator owner;
  std::shared_ptr<Operation> operation;
  Message message;
};

// The ranks that came with one unique id.
struct Group {
  int ranks = 0;
  std::map<int, nccl::Communicator> members;                         // of this process
  std::map<std::pair<int, int>, std::deque<Posted>> sends, receives; // by sender and receiver
  std::map<int64_t, std::vector<Posted>> gathers;                    // by their number
};

struct Symbol {
  int calls = 0, failCode = 0, failSkip = 0;
};

struct State {
  fake::SpinLock mutex;
  std::map<std::string, Symbol> symbols;
  std::map<std::string, std::shared_ptr<Group>> groups;
  std::map<nccl::Communicator, std::unique_ptr<nccl::CommunicatorStruct>> live;
  std::map<int, int> deaths; // operations by rank
  std::map<int, nccl::Code> errors;
  bool isLate = false;
  int awaited = 0;
  int stopped = -1; // rank
  int ids = 0;
  int atOnce = 0; // messages
};

State &state();
using Lock = std::unique_lock<fake::SpinLock>;
template <class Condition> void waitUntil(Lock &lock, const Condition &isMet) {
  while (!isMet()) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}
// Counts the call; non-zero: return that. The mutex is held.
nccl::Code enter(const char *symbol);
bool isLive(nccl::Communicator communicator);
nccl::Communicator makeCommunicator(const std::string &id, int rank, int ranks, int device, bool isBlocking);
// Of the same ranks and connections.
nccl::Communicator splitCommunicator(nccl::Communicator parent);
bool isComplete(nccl::Communicator communicator);
// Whether it still waits for others. Between processes this is when messages move.
bool isWaiting(nccl::Communicator communicator);
// Enqueues, and begins what can.
void post(nccl::Communicator communicator, std::shared_ptr<Operation> operation);
// Forgets it and what it has under way.
void end(nccl::Communicator communicator);
// Whether those have come that are to be awaited; then nobody is awaited any more.
bool haveCome(const Group &group);

} // namespace heddle::fakenccl

#endif
