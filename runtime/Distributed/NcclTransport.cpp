#include "runtime/Distributed/NcclTransport.h"

#include "runtime/Device/Capture.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Distributed/Patience.h"
#include "runtime/Distributed/RankPlaces.h"
#include "runtime/Distributed/RankWords.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace heddle {
namespace {

constexpr const char *kGather = "gather", *kExchange = "exchange", *kWait = "wait";
// NCCL keeps what it was told in memory for a thousand messages or so, and waits for room without a limit.
constexpr size_t kMostAhead = 64;

// What a rank gives, in pieces: a slot begins with the length of all of them. No slot that has arrived has all bits set.
using Length = uint64_t;
constexpr size_t kSlotBytes = 4096, kPieceBytes = kSlotBytes - sizeof(Length);
constexpr uint8_t kNothing = 0xff;
constexpr Length kMostGathered = Length(1) << 32;

Length lengthIn(const std::string &slots, size_t rank) {
  Length length;
  std::memcpy(&length, &slots[rank * kSlotBytes], sizeof length);
  return length;
}

void putPiece(const std::string &mine, size_t from, std::string &slots, size_t rank) {
  const Length length = mine.size();
  std::memcpy(&slots[rank * kSlotBytes], &length, sizeof length);
  if (from < mine.size())
    mine.copy(&slots[rank * kSlotBytes] + sizeof length, kPieceBytes, from);
}

template <class Message> Status checkMessage(const Message &message, const char *direction, RankOf place) {
  const std::string peer = " rank " + std::to_string(message.peer);
  const std::string place0 = std::string(kExchange) + ": rank " + std::to_string(place.rank) + " " + direction + peer;
  if (message.peer < 0 || message.peer >= place.ranks)
    return Status::invalidArgument(place0 + ", expected 0 to " + std::to_string(place.ranks - 1));
  if (message.peer == place.rank)
    return Status::invalidArgument(place0 + ", which is itself; its own memory needs no message");
  if (message.bytes > 0 && !message.data)
    return Status::invalidArgument(place0 + ": " + std::to_string(message.bytes) + " bytes at a null address");
  return {};
}

std::vector<int32_t> peersOf(const Exchange &step) {
  std::set<int32_t> peers;
  for (const SentBytes &sent : step.sends)
    peers.insert(sent.peer);
  for (const ReceivedBytes &received : step.receives)
    peers.insert(received.peer);
  return {peers.begin(), peers.end()};
}

Exchange withoutEmpty(const Exchange &step) {
  Exchange kept;
  auto hasBytes = [](const auto &message) { return message.bytes > 0; };
  std::copy_if(step.sends.begin(), step.sends.end(), std::back_inserter(kept.sends), hasBytes);
  std::copy_if(step.receives.begin(), step.receives.end(), std::back_inserter(kept.receives), hasBytes);
  return kept;
}

struct PartsOfStep {
  Exchange met, fresh; // by whether the two have exchanged bytes before, this way
};

PartsOfStep partsOf(const Exchange &step, const std::set<int32_t> &sentTo, const std::set<int32_t> &receivedFrom) {
  PartsOfStep parts;
  for (const SentBytes &sent : step.sends)
    (sentTo.count(sent.peer) ? parts.met : parts.fresh).sends.push_back(sent);
  for (const ReceivedBytes &received : step.receives)
    (receivedFrom.count(received.peer) ? parts.met : parts.fresh).receives.push_back(received);
  return parts;
}

bool isEmpty(const Exchange &step) { return step.sends.empty() && step.receives.empty(); }

// The first failure ends the calls.
nccl::Code callMessages(const NcclLibrary &nccl, nccl::Communicator handle, const Exchange &step, cuda::Stream stream) {
  nccl::Code code = nccl::kSuccess;
  auto isGood = [&] { return code == nccl::kSuccess || code == nccl::kInProgress; };
  for (size_t i = 0; isGood() && i < step.sends.size(); ++i) {
    const SentBytes &sent = step.sends[i];
    code = nccl.send(sent.data, sent.bytes, nccl::kUint8, sent.peer, handle, stream);
  }
  for (size_t i = 0; isGood() && i < step.receives.size(); ++i) {
    const ReceivedBytes &received = step.receives[i];
    code = nccl.recv(received.data, received.bytes, nccl::kUint8, received.peer, handle, stream);
  }
  return code;
}

std::vector<int32_t> othersOf(RankOf place) {
  std::vector<int32_t> others;
  for (int32_t rank = 0; rank < place.ranks; ++rank)
    if (rank != place.rank)
      others.push_back(rank);
  return others;
}

Status checkPlace(RankOf place) {
  if (place.ranks >= 1 && place.rank >= 0 && place.rank < place.ranks)
    return {};
  return Status::invalidArgument("join ranks: expected a rank from 0 to the number of ranks less one, got " +
                                 std::to_string(place.rank) + " of " + std::to_string(place.ranks));
}

} // namespace

Result<nccl::UniqueId> NcclTransport::makeId() {
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  nccl::UniqueId id;
  HEDDLE_TRY(nccl->check(nccl->getUniqueId(&id), "join ranks", "ncclGetUniqueId"));
  return id;
}

NcclTransport::NcclTransport(std::unique_ptr<NcclCommunicator> joined, DeviceStream stream, DeviceBuffer slots,
                             std::chrono::milliseconds limit)
    : communicator(std::move(joined)), log(communicator->device()), stream(std::move(stream)), slots(std::move(slots)),
      limit(limit) {}

// Memory is freed when the GPU is done with it, so that a step of a communicator that nobody aborts keeps it for good.
NcclTransport::~NcclTransport() {
  if (communicator->leavesWorkBehind())
    new DeviceBuffer(std::move(slots));
  NcclCommunicator::end(std::move(communicator));
}

Result<std::unique_ptr<NcclTransport>> NcclTransport::open(std::unique_ptr<NcclCommunicator> communicator,
                                                           std::chrono::milliseconds limit) {
  const Device &device = communicator->device();
  HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(device));
  HEDDLE_ASSIGN(DeviceBuffer slots,
                DeviceBuffer::allocate(device, int64_t(communicator->ranks()) * int64_t(kSlotBytes)));
  std::unique_ptr<NcclTransport> made(
      new NcclTransport(std::move(communicator), std::move(stream), std::move(slots), limit));
  HEDDLE_TRY(checkPlaces(*made, placeOf(made->device())));
  return made;
}

Result<std::unique_ptr<NcclTransport>> NcclTransport::join(const Device &device, const nccl::UniqueId &id, RankOf place,
                                                           std::chrono::milliseconds limit) {
  HEDDLE_TRY(checkPlace(place));
  HEDDLE_ASSIGN(std::unique_ptr<NcclCommunicator> joined,
                NcclCommunicator::join(device, id, place.rank, place.ranks, limit));
  return open(std::move(joined), limit);
}

Result<std::unique_ptr<NcclTransport>> NcclTransport::borrow(void *handle, RankOf place,
                                                             std::chrono::milliseconds limit) {
  HEDDLE_TRY(checkPlace(place));
  HEDDLE_ASSIGN(std::unique_ptr<NcclCommunicator> borrowed,
                NcclCommunicator::borrow(static_cast<nccl::Communicator>(handle), limit));
  if (borrowed->rank() != place.rank || borrowed->ranks() != place.ranks)
    return Status::invalidArgument("use a communicator: it is of rank " + std::to_string(borrowed->rank()) + " of " +
                                   std::to_string(borrowed->ranks()) + ", expected rank " + std::to_string(place.rank) +
                                   " of " + std::to_string(place.ranks));
  return open(std::move(borrowed), limit);
}

Status NcclTransport::checkStep(const Exchange &step) const {
  for (const SentBytes &sent : step.sends)
    HEDDLE_TRY(checkMessage(sent, "sends to", {rank(), ranks()}));
  for (const ReceivedBytes &received : step.receives)
    HEDDLE_TRY(checkMessage(received, "receives from", {rank(), ranks()}));
  return {};
}

Status NcclTransport::exchange(const Exchange &step, void *onto) {
  HEDDLE_TRY(communicator->poll(kExchange));
  if (Status wrong = checkStep(step); !wrong.isOk())
    return communicator->leave(wrong);
  Exchange kept = withoutEmpty(step);
  std::vector<int32_t> peers = peersOf(kept);
  if (peers.empty())
    return {};
  const auto target = static_cast<cuda::Stream>(onto);
  const bool isLogged = !isCaptured(*device().state()->driver, target); // nobody may ask for events of a graph
  if (auto updated = isLogged ? log.update() : Result<bool>(false); !updated)
    return communicator->leave(updated.status());
  Status status = isLogged ? log.begin(std::move(peers), target) : communicator->hold(target);
  if (status.isOk())
    status = enqueue(kept, target, isLogged);
  if (status.isOk() && isLogged)
    status = log.end(target);
  return status.isOk() ? status : communicator->leave(status);
}

// Messages of a graph are of the communicator that the graph holds.
Status NcclTransport::enqueue(const Exchange &step, cuda::Stream target, bool isLogged) {
  const bool isAtOnce = isLogged && communicator->isPrompt();
  const PartsOfStep parts = isAtOnce ? partsOf(step, sentTo, receivedFrom) : PartsOfStep{{}, step};
  auto callsOf = [target](const Exchange &part) {
    return [part, target](const NcclLibrary &nccl, nccl::Communicator handle) {
      return callMessages(nccl, handle, part, target);
    };
  };
  if (!isEmpty(parts.met)) {
    const Awaited awaited = [&] { return ranksText(peersOf(parts.met)); };
    HEDDLE_TRY(makeRoom());
    HEDDLE_TRY(communicator->enqueueAtOnce(kExchange, callsOf(parts.met), awaited));
  }
  if (isEmpty(parts.fresh))
    return {};
  HEDDLE_TRY(communicator->enqueue(kExchange, callsOf(parts.fresh), [&] { return ranksText(peersOf(parts.fresh)); }));
  for (const SentBytes &sent : parts.fresh.sends)
    sentTo.insert(sent.peer);
  for (const ReceivedBytes &received : parts.fresh.receives)
    receivedFrom.insert(received.peer);
  return {};
}

// Others have `limit` since the GPU last got on; this rank's own kernels have all the time they take. `isOver` is asked when
// the log is as new as the GPU.
Status NcclTransport::await(const char *operation, const IsOver &isOver, const Awaited &awaited) {
  Patience patience(limit);
  for (;;) {
    HEDDLE_TRY(communicator->poll(operation));
    HEDDLE_ASSIGN(const bool hasChanged, log.update());
    if (hasChanged)
      patience.restart();
    HEDDLE_ASSIGN(const bool isDone, isOver());
    if (isDone)
      return {};
    const LoggedStep *oldest = log.unfinished();
    if (!oldest || !oldest->hasBegun)
      patience.extend();
    else if (patience.isOver())
      return notCome(operation, awaited(), limit);
    patience.pause();
  }
}

// Until the stream has come to its end.
Status NcclTransport::awaitEnd(const char *operation, cuda::Stream last, const Awaited &awaited) {
  HEDDLE_ASSIGN(DeviceEvent end, DeviceEvent::create(device()));
  HEDDLE_TRY(end.record(last));
  return await(operation, [&] { return log.unfinished() ? Result<bool>(false) : end.waitFor(0); }, awaited);
}

Status NcclTransport::makeRoom() {
  const auto isThere = [this] { return Result<bool>(log.unfinishedSteps() <= kMostAhead); };
  return *isThere() ? Status() : await(kExchange, isThere, [this] { return oldestText(); });
}

std::string NcclTransport::oldestText() const {
  const LoggedStep &step = *log.unfinished();
  return ranksText(step.peers) + " in step " + std::to_string(step.number) + " of rank " + std::to_string(rank());
}

Status NcclTransport::wait(void *onto) {
  const Status status = awaitEnd(kWait, static_cast<cuda::Stream>(onto), [this] { return oldestText(); });
  return status.isOk() ? status : communicator->leave(status);
}

// Those of whom nothing has come, as far as the GPU can be asked.
std::string NcclTransport::missingSlots() const {
  const std::string all = ranksText(othersOf({rank(), ranks()}));
  std::string host(size_t(slots.bytes()), '\0');
  auto other = DeviceStream::create(device()); // the first one waits for what is missing
  if (!other || !slots.copyTo(host.data(), slots.bytes(), 0, other->handle()).isOk() ||
      !device().synchronize(other->handle()).isOk())
    return all;
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < ranks(); ++rank)
    if (lengthIn(host, size_t(rank)) == ~Length(0))
      missing.push_back(rank);
  return missing.empty() ? all : ranksText(missing);
}

// One collective: from this rank's slot of `host` to all slots of it.
Status NcclTransport::gatherSlots(std::string &host) {
  const int64_t own = int64_t(rank()) * int64_t(kSlotBytes);
  HEDDLE_TRY(slots.fillBytes(kNothing, stream.handle()));
  HEDDLE_TRY(slots.copyFrom(&host[size_t(own)], int64_t(kSlotBytes), own, stream.handle()));
  auto *all = static_cast<char *>(slots.data());
  auto calls = [all, own, target = stream.handle()](const NcclLibrary &nccl, nccl::Communicator handle) {
    return nccl.allGather(all + own, all, kSlotBytes, nccl::kUint8, handle, target);
  };
  auto awaited = [this] { return missingSlots(); };
  HEDDLE_TRY(log.begin(othersOf({rank(), ranks()}), stream.handle()));
  HEDDLE_TRY(communicator->enqueue(kGather, calls, awaited));
  HEDDLE_TRY(log.end(stream.handle()));
  HEDDLE_TRY(awaitEnd(kGather, stream.handle(), awaited)); // before the copy, that waits for ever
  HEDDLE_TRY(slots.copyTo(host.data(), slots.bytes(), 0, stream.handle()));
  return device().synchronize(stream.handle());
}

Result<std::vector<std::string>> NcclTransport::gather(const std::string &mine) {
  std::vector<std::string> gathered{size_t(ranks())};
  std::string host(size_t(slots.bytes()), '\0');
  size_t longest = 0, from = 0;
  do {
    putPiece(mine, from, host, size_t(rank()));
    if (Status status = gatherSlots(host); !status.isOk())
      return communicator->leave(status);
    for (size_t peer = 0; peer < gathered.size(); ++peer) {
      const Length length = lengthIn(host, peer);
      if (length > kMostGathered)
        return communicator->leave(Status::internal("gather: rank " + std::to_string(peer) + " gave " +
                                                    std::to_string(length) + " bytes; do all ranks run one version?"));
      longest = std::max(longest, size_t(length));
      if (from < length)
        gathered[peer].append(host, peer * kSlotBytes + sizeof(Length), std::min(kPieceBytes, size_t(length) - from));
    }
    from += kPieceBytes;
  } while (from < longest);
  return gathered;
}

void NcclTransport::abort(const std::string &why) {
  (void)communicator->leave(Status::unavailable("rank " + std::to_string(rank()) + " leaves: " + why));
}

} // namespace heddle
