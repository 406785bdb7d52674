//===- FakeState.cpp - how messages meet ------------------------------------===//
#include "SharedRanks.h"

#include "../fake_cuda/FakeCuda.h"

#include <cstdlib>
#include <cstring>

namespace heddle::fakenccl {
using namespace fake;

namespace {

void begin(nccl::Communicator communicator);

void complete(nccl::Communicator owner, const Operation &operation) {
  for (void *held : operation.held)
    fakeCudaRelease(held);
  owner->operations.pop_front();
  begin(owner);
}

// One message of the operation is done; it is the first of its owner.
void settle(const Posted &posted) {
  if (--posted.operation->open == 0)
    complete(posted.owner, *posted.operation);
}

void fail(nccl::Communicator communicator) { communicator->error = nccl::kInternalError; }

void meet(Group &group, std::pair<int, int> way) {
  std::deque<Posted> &sends = group.sends[way], &receives = group.receives[way];
  while (!sends.empty() && !receives.empty()) {
    const Posted sent = sends.front(), received = receives.front();
    sends.pop_front();
    receives.pop_front();
    if (sent.message.bytes != received.message.bytes) {
      fail(sent.owner);
      fail(received.owner);
      return;
    }
    std::memcpy(received.message.to, sent.message.from, sent.message.bytes);
    settle(sent);
    settle(received);
  }
}

void copySlot(const Posted &from, const Posted &to) {
  void *slot = static_cast<char *>(to.operation->all) + size_t(from.owner->rank) * from.operation->bytes;
  if (slot != from.operation->own)
    std::memcpy(slot, from.operation->own, from.operation->bytes);
}

void meetAll(Group &group, const Posted &mine) {
  std::vector<Posted> &here = group.gathers[mine.owner->gathers++];
  here.push_back(mine);
  for (const Posted &other : here) {
    if (other.operation->bytes != mine.operation->bytes)
      return fail(other.owner), fail(mine.owner);
    copySlot(mine, other);
    copySlot(other, mine);
  }
  if (int(here.size()) < group.ranks)
    return;
  const std::vector<Posted> all = here;
  for (const Posted &other : all)
    settle(other);
}

bool isDead(nccl::Communicator communicator) {
  const auto death = state().deaths.find(communicator->rank);
  return death != state().deaths.end() && communicator->family->count >= death->second;
}

// The first operation of the communicator meets those of others.
void begin(nccl::Communicator communicator) {
  if (communicator->operations.empty() || isDead(communicator))
    return;
  ++communicator->family->count;
  const std::shared_ptr<Operation> operation = communicator->operations.front();
  Group &group = *communicator->group;
  if (operation->isGather)
    return meetAll(group, {communicator, operation, {}});
  std::vector<std::pair<int, int>> ways;
  for (const Message &sent : operation->sends) {
    ways.push_back({communicator->rank, sent.peer});
    group.sends[ways.back()].push_back({communicator, operation, sent});
  }
  for (const Message &received : operation->receives) {
    ways.push_back({received.peer, communicator->rank});
    group.receives[ways.back()].push_back({communicator, operation, received});
  }
  for (const auto &way : ways)
    meet(group, way);
}

State *makeState() {
  auto *made = new State;
  int rank = 0, operation = 0;
  const char *dies = std::getenv("HEDDLE_FAKE_NCCL_DIES");
  if (dies && std::sscanf(dies, "%d@%d", &rank, &operation) == 2)
    made->deaths[rank] = operation;
  return made;
}

} // namespace

State &state() {
  static State *only = makeState();
  return *only;
}

nccl::Code enter(const char *name) {
  Symbol &symbol = state().symbols[name];
  ++symbol.calls;
  return symbol.failCode != 0 && symbol.failSkip-- <= 0 ? symbol.failCode : nccl::kSuccess;
}

bool isLive(nccl::Communicator communicator) { return state().live.count(communicator) > 0; }

nccl::Communicator makeCommunicator(const std::string &id, int rank, int ranks, int device, bool isBlocking) {
  std::shared_ptr<Group> &group = state().groups[id];
  if (!group)
    group = std::make_shared<Group>();
  auto made = std::make_unique<nccl::CommunicatorStruct>();
  made->group = group;
  made->id = id;
  made->rank = rank;
  made->ranks = group->ranks = ranks;
  made->device = device;
  made->isBlocking = isBlocking;
  if (id[0] == '/') {
    made->shared = SharedRanks::join(id.c_str(), rank);
    if (!made->shared)
      return nullptr;
  }
  const nccl::Communicator handle = made.get();
  group->members[rank] = handle;
  state().live[handle] = std::move(made);
  return handle;
}

nccl::Communicator splitCommunicator(nccl::Communicator parent) {
  const std::string id = parent->id.c_str(); // without the zeros behind it
  const nccl::Communicator child =
      makeCommunicator(id + "-split", parent->rank, parent->ranks, parent->device, /*isBlocking=*/false);
  if (!child)
    return nullptr;
  child->isSplit = true;
  child->family = parent->family;
  return parent->child = child;
}

bool isComplete(nccl::Communicator communicator) {
  return communicator->shared ? communicator->shared->isComplete(communicator->ranks)
                              : int(communicator->group->members.size()) == communicator->ranks;
}

bool isWaiting(nccl::Communicator communicator) {
  auto &operations = communicator->operations;
  while (communicator->shared && !operations.empty() &&
         communicator->shared->move(communicator->rank, *operations.front(), communicator->error)) {
    for (void *held : operations.front()->held)
      fakeCudaRelease(held);
    operations.pop_front();
  }
  const nccl::Communicator child = communicator->child;
  return !isComplete(communicator) || !operations.empty() || (child && isLive(child) && !isComplete(child));
}

void post(nccl::Communicator communicator, std::shared_ptr<Operation> operation) {
  if (communicator->shared) {
    if (operation->isGather)
      spreadGather(communicator->rank, communicator->ranks, *operation);
    communicator->operations.push_back(std::move(operation));
    return;
  }
  operation->open = operation->isGather ? 1 : operation->sends.size() + operation->receives.size();
  communicator->operations.push_back(std::move(operation));
  if (communicator->operations.size() == 1)
    begin(communicator);
}

void end(nccl::Communicator communicator) {
  Group &group = *communicator->group;
  auto forget = [&](std::deque<Posted> &posted) {
    for (auto it = posted.begin(); it != posted.end();)
      it = it->owner == communicator ? posted.erase(it) : it + 1;
  };
  for (auto *ways : {&group.sends, &group.receives})
    for (auto &[way, posted] : *ways)
      forget(posted);
  for (auto &[number, posted] : group.gathers)
    for (size_t i = posted.size(); i-- > 0;)
      if (posted[i].owner == communicator)
        posted.erase(posted.begin() + std::ptrdiff_t(i));
  for (const auto &operation : communicator->operations)
    for (void *held : operation->held)
      fakeCudaRelease(held);
  state().live.erase(communicator);
}

bool haveCome(const Group &group) {
  int waiting = 0;
  for (const auto &[rank, member] : group.members)
    waiting += isLive(member) && isWaiting(member);
  if (waiting >= state().awaited)
    state().awaited = 0;
  return state().awaited == 0;
}

} // namespace heddle::fakenccl

namespace heddle::fake {
using namespace fakenccl;

extern "C" {

void fakeNcclReset() {
  Lock lock(state().mutex);
  state().symbols.clear();
  state().groups.clear();
  state().live.clear();
  state().deaths.clear();
  state().errors.clear();
  state().isLate = false;
  state().awaited = 0;
  state().stopped = -1;
  state().atOnce = 0;
}

int fakeNcclAtOnce() {
  Lock lock(state().mutex);
  return state().atOnce;
}

int fakeNcclCalls(const char *symbol) {
  Lock lock(state().mutex);
  return state().symbols[symbol].calls;
}

void fakeNcclFail(const char *symbol, int code, int skip) {
  Lock lock(state().mutex);
  state().symbols[symbol].failCode = code;
  state().symbols[symbol].failSkip = skip;
}

void fakeNcclDie(int rank, int operation) {
  Lock lock(state().mutex);
  state().deaths[rank] = operation;
}

void fakeNcclStop(int rank) {
  Lock lock(state().mutex);
  state().stopped = rank;
}

void fakeNcclAsyncError(int rank, int code) {
  Lock lock(state().mutex);
  state().errors[rank] = code;
}

void fakeNcclSetLate(int isLate) {
  Lock lock(state().mutex);
  state().isLate = isLate;
}

void fakeNcclAwait(int ranks) {
  Lock lock(state().mutex);
  state().awaited = ranks;
}

void *fakeNcclCommunicator(const void *id, int rank, int ranks, int device) {
  Lock lock(state().mutex);
  return makeCommunicator(std::string(static_cast<const char *>(id), sizeof(nccl::UniqueId)), rank, ranks, device,
                          true);
}

int fakeNcclLive() {
  Lock lock(state().mutex);
  std::set<std::shared_ptr<Family>> families;
  for (const auto &[handle, communicator] : state().live)
    families.insert(communicator->family);
  return int(families.size());
}
}

} // namespace heddle::fake
