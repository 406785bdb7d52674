#include "runtime/Distributed/NcclCommunicator.h"

#include "runtime/Core/Thrown.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Distributed/Patience.h"
#include "runtime/Distributed/RankWords.h"

#include <algorithm>
#include <vector>

namespace heddle {
namespace {

constexpr const char *kJoin = "join ranks", *kBorrow = "use a communicator";
// What messages may take from the kernels beside them: of two H200 one of up to 128 MiB then has 8 processors, and windows of 8k
// tokens take 4% less than with all that NCCL takes by itself (docs/distributed.md). NCCL_MAX_CTAS says otherwise.
constexpr int kMostProcessors = 16;
// ncclCommAbort tells the GPU to go on before it does anything else; what it waits for later is nobody's concern.
constexpr std::chrono::milliseconds kAbortLimit = std::chrono::seconds(2);

// One group, on the thread that calls. The group is closed whatever happens in it.
Status callGroup(const NcclLibrary &nccl, const DeviceState &state, nccl::Communicator handle, const char *operation,
                 const NcclCommunicator::Calls &calls) {
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(operation));
  HEDDLE_TRY(nccl.check(nccl.groupStart(), operation, "ncclGroupStart"));
  const nccl::Code inside = calls(nccl, handle), end = nccl.groupEnd();
  HEDDLE_TRY(nccl.check(inside, operation, "a call of the group", handle));
  return nccl.check(end, operation, "ncclGroupEnd", handle);
}

// Those that graphs hold, as long as the process.
struct Kept {
  using Communicators = std::vector<std::unique_ptr<NcclCommunicator>>;
  std::mutex mutex;
  Communicators held;

  static Kept &ofProcess() {
    static Kept *kept = new Kept;
    return *kept;
  }
  void add(std::unique_ptr<NcclCommunicator> communicator) {
    std::lock_guard<std::mutex> lock(mutex);
    held.push_back(std::move(communicator));
  }
  Communicators takeFree() {
    std::lock_guard<std::mutex> lock(mutex);
    Communicators taken;
    for (auto &each : held)
      if (!each->isHeld())
        taken.push_back(std::move(each));
    held.erase(std::remove(held.begin(), held.end(), nullptr), held.end());
    return taken;
  }
};

} // namespace

void NcclCommunicator::end(std::unique_ptr<NcclCommunicator> communicator) {
  Kept &kept = Kept::ofProcess();
  if (communicator->isHeld())
    kept.add(std::move(communicator));
  communicator.reset();
  kept.takeFree().clear();
}

// One call that does not block.
template <class F> Status NcclCommunicator::call(const char *operation, const char *name, F &&f) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.isOk())
    return failure;
  ContextScope scope(*gpu.state());
  HEDDLE_TRY(scope.status(operation));
  return nccl.check(f(), operation, name, handle);
}

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::join(const Device &device, const nccl::UniqueId &id,
                                                                 int32_t rank, int32_t ranks,
                                                                 std::chrono::milliseconds limit) {
  Kept::ofProcess().takeFree().clear();
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  if (!nccl->commInitRankConfig || !nccl->commFinalize)
    return Status::unavailable("join ranks: NCCL " + nccl->versionText() + " of '" + nccl->path +
                               "' makes no communicators that can be given up; 2.14 or later does, or give one that "
                               "exists");
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(*nccl, device, limit));
  made->ownRank = rank;
  made->rankCount = ranks;
  nccl::Config config;
  config.blocking = 0;
  config.maxCTAs = kMostProcessors;
  config.splitShare = 1;
  const Status status = made->call(kJoin, "ncclCommInitRankConfig",
                                   [&] { return nccl->commInitRankConfig(&made->handle, ranks, id, rank, &config); });
  if (!status.isOk())
    return made->leave(status);
  const auto awaited = [ranks] {
    return "all of " + std::to_string(ranks) +
           " ranks to come; NCCL does not say which of them did (NCCL_DEBUG=INFO shows it)";
  };
  HEDDLE_TRY(made->settle(kJoin, awaited));
  HEDDLE_TRY(made->joinPrompt(config, awaited));
  return made;
}

Status NcclCommunicator::joinPrompt(nccl::Config config, const Awaited &awaited) {
  if (!nccl.commSplit)
    return {};
  config.blocking = 1;
  const Status status =
      call(kJoin, "ncclCommSplit", [&] { return nccl.commSplit(handle, 0, ownRank, prompt.get(), &config); });
  if (!status.isOk())
    return leave(status);
  HEDDLE_TRY(settle(kJoin, awaited));
  hasSettled = true;
  return {};
}

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::borrow(nccl::Communicator handle,
                                                                   std::chrono::milliseconds limit) {
  if (!handle)
    return Status::invalidArgument("use a communicator: it is null; PyTorch makes one with a group's first collective");
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  int ordinal = 0;
  HEDDLE_TRY(nccl->check(nccl->commCuDevice(handle, &ordinal), kBorrow, "ncclCommCuDevice", handle));
  HEDDLE_ASSIGN(Device device, Device::open(ordinal));
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(*nccl, device, limit));
  made->handle = handle;
  made->callThread = std::make_unique<CallThread>();
  HEDDLE_TRY(made->readPlace());
  return made;
}

Status NcclCommunicator::readPlace() {
  int count = 0, rank = 0;
  HEDDLE_TRY(nccl.check(nccl.commCount(handle, &count), kBorrow, "ncclCommCount", handle));
  HEDDLE_TRY(nccl.check(nccl.commUserRank(handle, &rank), kBorrow, "ncclCommUserRank", handle));
  ownRank = rank;
  rankCount = count;
  return {};
}

NcclCommunicator::~NcclCommunicator() {
  if (handle && !callThread && !gpu.isAbandoned())
    finish();
}

// What is under way ends within the limit, or is aborted.
void NcclCommunicator::finish() {
  constexpr const char *kLeave = "leave ranks";
  Status status = call(kLeave, "ncclCommFinalize", [&] { return nccl.commFinalize(handle); });
  if (status.isOk())
    status = settle(kLeave, [] { return "all ranks"; });
  if (status.isOk())
    endWithin(limit, nccl.commDestroy);
  else
    (void)leave(status);
}

// NCCL ends a communicator when its peers have closed their connections to it, or were lost: a peer that is stopped keeps
// them open, and NCCL knows no limit. So this is a thread's, which is left alone with it. The second one shares what the first one
// owns, so it ends first; unless the first one is still making it, which ends with that.
void NcclCommunicator::endWithin(std::chrono::milliseconds most, End end) {
  Patience patience(most);
  auto isOver = [&] {
    patience.pause();
    return patience.isOver();
  };
  CallThread().run(
      [end, first = std::exchange(handle, nullptr), prompt = prompt, isMade = hasSettled, state = gpu.state()] {
        ContextScope scope(*state);
        if (isMade && *prompt)
          end(*prompt);
        end(first);
        if (!isMade && *prompt)
          end(*prompt);
      },
      isOver);
}

Status NcclCommunicator::state() const {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

// What NCCL says of the work that is under way: done, in progress, or a failure of it, which ends the rank.
Status NcclCommunicator::ask(const char *operation, nccl::Code &code) {
  code = nccl::kSuccess;
  const Status status = call(operation, "work of NCCL", [&] {
    nccl::Code asked = nccl.commGetAsyncError(handle, &code);
    if (asked == nccl::kSuccess && code == nccl::kSuccess && isPrompt())
      asked = nccl.commGetAsyncError(*prompt, &code);
    return asked == nccl::kSuccess ? code : asked;
  });
  return status.isOk() ? status : leave(status);
}

Status NcclCommunicator::poll(const char *operation) {
  nccl::Code code;
  return ask(operation, code);
}

// Waits until NCCL's own part of the last call is done.
Status NcclCommunicator::settle(const char *operation, const Awaited &awaited) {
  Patience patience(limit);
  for (;;) {
    nccl::Code code;
    HEDDLE_TRY(ask(operation, code));
    if (code != nccl::kInProgress)
      return {};
    if (patience.isOver())
      return leave(notCome(operation, awaited(), limit));
    patience.pause();
  }
}

Status NcclCommunicator::runGroup(const char *operation, nccl::Communicator of, const Calls &calls) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.isOk())
    return failure;
  return callGroup(nccl, *gpu.state(), of, operation, calls);
}

Status NcclCommunicator::runElsewhere(const char *operation, Calls calls, const Awaited &awaited) {
  auto result = std::make_shared<Status>();
  auto group = [&nccl = nccl, state = gpu.state(), handle = handle, operation, calls = std::move(calls), result] {
    *result = withoutExceptions([&] { return callGroup(nccl, *state, handle, operation, calls); });
  };
  Patience patience(limit);
  auto isOver = [&] {
    patience.pause();
    return patience.isOver() || !state().isOk();
  };
  if (callThread->run(group, isOver))
    return *result;
  HEDDLE_TRY(state());
  return notCome(operation, awaited(), limit);
}

Status NcclCommunicator::enqueue(const char *operation, Calls calls, const Awaited &awaited) {
  HEDDLE_TRY(poll(operation));
  const Status status =
      callThread ? runElsewhere(operation, std::move(calls), awaited) : runGroup(operation, handle, calls);
  return status.isOk() ? settle(operation, awaited) : leave(status);
}

Status NcclCommunicator::enqueueAtOnce(const char *operation, const Calls &calls, const Awaited &awaited) {
  const Status status = runGroup(operation, *prompt, calls);
  return status.isOk() ? settle(operation, awaited) : leave(status);
}

Status NcclCommunicator::leave(Status why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.isOk())
    return failure;
  failure = Status(why.code(), why.message() + (callThread ? "; this rank calls its communicator no more; it is its "
                                                             "owner's to abort (ncclCommAbort), what was enqueued "
                                                             "waits until then"
                                                           : "; this rank has left its communicator"));
  if (callThread || !handle || gpu.isAbandoned())
    return failure;
  // NCCL waits for graphs first.
  endWithin(graphs.isHeld() ? std::chrono::milliseconds(0) : std::min(limit, kAbortLimit), nccl.commAbort);
  return failure;
}

} // namespace heddle
