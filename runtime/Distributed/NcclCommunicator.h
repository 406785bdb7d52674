// Owns how NCCL is called: never for longer than others may take, never after the rank has left, and with one reason for
// all failures. A communicator that is made here never blocks, and ends with the object, or on a thread that is left alone where NCCL
// waits for others to end theirs; one of others is called from a thread that may be given up, and is neither aborted nor destroyed. One
// that graphs of the driver hold is kept for them. NCCL starts a thread for each call of a communicator that never blocks, some 60 to
// 200 us; so one of 2.18 or later has a second one beside it, with the same ranks and connections, for calls in which nobody is waited for.
#pragma once

#include "runtime/Device/Device.h"
#include "runtime/Distributed/CallThread.h"
#include "runtime/Distributed/GraphHolds.h"
#include "runtime/Distributed/NcclLibrary.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

namespace heddle {

// Used by one thread at a time, but for leave().
class NcclCommunicator {
public:
  // Enqueues operations; what it refers to is its own, for it may run on after its caller gave up.
  using Calls = std::function<nccl::Code(const NcclLibrary &, nccl::Communicator)>;

  // For whom one waits, for the message; asked when the limit is reached.
  using Awaited = std::function<std::string()>;

  // Collective. unavailable: some rank did not come within the limit.
  static Result<std::unique_ptr<NcclCommunicator>> join(const Device &device, const nccl::UniqueId &id, int32_t rank,
                                                        int32_t ranks, std::chrono::milliseconds limit);
  // invalidArgument if NCCL does not know `handle`.
  static Result<std::unique_ptr<NcclCommunicator>> borrow(nccl::Communicator handle, std::chrono::milliseconds limit);
  ~NcclCommunicator();
  // Ends it; while graphs hold it, it is kept as it is, so that they can be launched, and ends when the next one is joined or
  // ended behind the last of them.
  static void end(std::unique_ptr<NcclCommunicator> communicator);
  NcclCommunicator(const NcclCommunicator &) = delete;
  NcclCommunicator &operator=(const NcclCommunicator &) = delete;

  int32_t rank() const { return ownRank; }
  int32_t ranks() const { return rankCount; }
  const Device &device() const { return gpu; }

  // Makes `calls` as one group and returns when the host's part of them is done. The first time that two ranks meet that
  // waits for both.
  Status enqueue(const char *operation, Calls calls, const Awaited &awaited);
  // The same on this thread, where ranks that meet have met before, each way. Both sides of a message take the same of the two.
  Status enqueueAtOnce(const char *operation, const Calls &calls, const Awaited &awaited);
  bool isPrompt() const { return hasSettled && *prompt; }

  // What is enqueued next is captured with this stream.
  Status hold(cuda::Stream stream) { return graphs.add(gpu, stream); }

  // Ok, or why the rank has left; asks NCCL whether something has failed meanwhile.
  Status poll(const char *operation);

  // Graphs hold it, which is nobody's but its owner's concern where it is one of others.
  bool isHeld() const { return !callThread && handle && graphs.isHeld(); }

  // The rank has left a communicator that is not its own to abort.
  bool leavesWorkBehind() const { return callThread && !state().isOk(); }

  // The rank leaves, for `why`; returns why it left in the first place. From any thread.
  Status leave(Status why);

private:
  NcclCommunicator(const NcclLibrary &nccl, Device device, std::chrono::milliseconds limit)
      : nccl(nccl), gpu(std::move(device)), limit(limit) {}
  Status readPlace();
  Status state() const;
  template <class F> Status call(const char *operation, const char *name, F &&f);
  Status joinPrompt(nccl::Config config, const Awaited &awaited);
  Status ask(const char *operation, nccl::Code &code);
  Status settle(const char *operation, const Awaited &awaited);
  Status runGroup(const char *operation, nccl::Communicator of, const Calls &calls);
  Status runElsewhere(const char *operation, Calls calls, const Awaited &awaited);
  void finish();
  using End = nccl::Code (*)(nccl::Communicator);
  void endWithin(std::chrono::milliseconds most, End end);

  const NcclLibrary &nccl;
  Device gpu;
  const std::chrono::milliseconds limit;
  nccl::Communicator handle = nullptr; // null once it was aborted or destroyed
  // Of calls at once; null: there is none. NCCL writes it while ranks join, which may be when this object has been given up.
  std::shared_ptr<nccl::Communicator> prompt = std::make_shared<nccl::Communicator>(nullptr);
  bool hasSettled = false;                // `prompt` is what it will be
  std::unique_ptr<CallThread> callThread; // of a communicator of others
  int32_t ownRank = 0, rankCount = 0;
  GraphHolds graphs;
  mutable std::mutex mutex; // guards handle and failure; held while NCCL is called, if that does not block
  Status failure;
};

} // namespace heddle
