// Owns a rank's end over NCCL (NcclLibrary.h says how that is found). NCCL carries no words and tells nobody that a rank
// left: the others find that out by their own limits, and what is named are the peers that a step exchanges with. Time of
// a rank's own kernels does not count, that of its peers does. Ranks that have exchanged bytes before do so at once (NcclCommunicator::enqueueAtOnce),
// and are at most 64 steps ahead of their GPUs then.
#pragma once

#include "runtime/Distributed/NcclCommunicator.h"
#include "runtime/Distributed/StepLog.h"
#include "runtime/Distributed/Transport.h"

#include <set>

namespace heddle {

// A rank of a group, as its caller knows it.
struct RankOf {
  int32_t rank, ranks;
};

class NcclTransport final : public Transport {
public:
  // For one rank, which hands it to the others.
  static Result<nccl::UniqueId> makeId();

  // Both are collective, and end as checkPlaces() does.
  // A communicator of this transport's own, on `device`. invalidArgument: no such rank.
  static Result<std::unique_ptr<NcclTransport>> join(const Device &device, const nccl::UniqueId &id, RankOf place,
                                                     std::chrono::milliseconds limit = kDefaultRankLimit);
  // One that exists (an ncclComm_t), on its GPU. It must outlive the transport, which does not end it, even when a rank
  // is lost. invalidArgument: it has another rank or size.
  static Result<std::unique_ptr<NcclTransport>> borrow(void *communicator, RankOf place,
                                                       std::chrono::milliseconds limit = kDefaultRankLimit);

  // What is under way ends within the limit, or is aborted.
  ~NcclTransport() override;

  int32_t rank() const override { return communicator->rank(); }
  int32_t ranks() const override { return communicator->ranks(); }
  const Device &device() const { return communicator->device(); }

  Result<std::vector<std::string>> gather(const std::string &mine) override;
  // Messages are of memory of the GPU; sends and receives without bytes are left out, so both sides must know.
  Status exchange(const Exchange &step, void *stream) override;
  Status wait(void *stream) override;
  void abort(const std::string &why) override;

private:
  NcclTransport(std::unique_ptr<NcclCommunicator> communicator, DeviceStream stream, DeviceBuffer slots,
                std::chrono::milliseconds limit);
  static Result<std::unique_ptr<NcclTransport>> open(std::unique_ptr<NcclCommunicator> communicator,
                                                     std::chrono::milliseconds limit);
  Status checkStep(const Exchange &step) const;
  using Awaited = NcclCommunicator::Awaited;
  using IsOver = std::function<Result<bool>()>;
  Status await(const char *operation, const IsOver &isOver, const Awaited &awaited);
  Status awaitEnd(const char *operation, cuda::Stream last, const Awaited &awaited);
  Status makeRoom();
  std::string oldestText() const;
  Status enqueue(const Exchange &step, cuda::Stream target, bool isLogged);
  Status gatherSlots(std::string &host);
  std::string missingSlots() const;

  std::unique_ptr<NcclCommunicator> communicator;
  StepLog log;
  DeviceStream stream;                    // of gather
  DeviceBuffer slots;                     // of gather, one for each rank
  std::set<int32_t> sentTo, receivedFrom; // with whom this rank has connected, each way
  const std::chrono::milliseconds limit;
};

} // namespace heddle
