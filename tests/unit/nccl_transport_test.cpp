//===- nccl_transport_test.cpp - messages over NCCL -------------------------===//
// With the stand-in of NCCL, in which nothing is lost. nccl_lost_test.cpp has what is.
#include "nccl_fixture.h"

#include <atomic>

using namespace heddle;
using namespace heddle::test;

namespace {

// What rank `from` sends to rank `to` as message `number`; every fourth one has no bytes.
int64_t bytesOf(int32_t from, int32_t to, int32_t number) {
  return (from + to + number) % 4 == 0 ? 0 : 100 + from * 31 + to * 7 + number * 1000;
}
uint8_t seedOf(int32_t from, int32_t to, int32_t number) { return uint8_t(from * 64 + to * 8 + number); }

// The memory of one rank's step with all others, of `count` messages each way.
struct Traffic {
  std::vector<DeviceBuffer> sent, received;
  std::vector<uint8_t> seeds; // of what is received
  Exchange step;

  Status add(const NcclTransport &transport, int32_t peer, int32_t number) {
    const int32_t rank = transport.rank();
    HEDDLE_ASSIGN(DeviceBuffer out,
                  filled(transport.device(), bytesOf(rank, peer, number), seedOf(rank, peer, number)));
    HEDDLE_ASSIGN(DeviceBuffer in, filled(transport.device(), bytesOf(peer, rank, number), 0));
    step.sends.push_back({peer, out.data(), uint64_t(out.bytes())});
    step.receives.push_back({peer, in.data(), uint64_t(in.bytes())});
    seeds.push_back(seedOf(peer, rank, number));
    sent.push_back(std::move(out));
    received.push_back(std::move(in));
    return {};
  }
  Status check() const {
    for (size_t i = 0; i < received.size(); ++i)
      if (!holds(received[i], seeds[i]))
        return Status::internal("message " + std::to_string(i) + " is not what was sent");
    return {};
  }
};

// Two steps with all others: the first of two messages for each, the second of one.
Status exchangeWithAll(NcclTransport &transport, cuda::Stream stream) {
  Traffic steps[2];
  for (int32_t peer = 0; peer < transport.ranks(); ++peer)
    for (int32_t number = 0; peer != transport.rank() && number < 3; ++number)
      HEDDLE_TRY(steps[number / 2].add(transport, peer, number));
  for (Traffic &traffic : steps)
    HEDDLE_TRY(transport.exchange(traffic.step, stream));
  HEDDLE_TRY(transport.wait(stream));
  for (const Traffic &traffic : steps)
    HEDDLE_TRY(traffic.check());
  return {};
}

Status exchangeOnOwnStream(NcclTransport &transport) {
  HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(transport.device()));
  return exchangeWithAll(transport, stream.handle());
}

void checkAll(const std::vector<Status> &statuses) {
  for (const Status &status : statuses)
    CHECK_MESSAGE(status.isOk(), status.str());
}

Exchange oneEach(int32_t peer, DeviceBuffer &buffer) { return {{{peer, buffer.data(), uint64_t(buffer.bytes())}}, {}}; }

} // namespace

TEST_CASE("the right bytes come, in the order of both sides, for 2, 3 and 8 ranks") {
  for (int32_t ranks : {2, 3, 8})
    for (int isLate : {0, 1}) {
      CAPTURE(ranks);
      CAPTURE(isLate);
      startNccl();
      Transports joined = joinAll(ranks);
      fake::fakeNcclSetLate(isLate);
      checkAll(onRanks(firstRanks(ranks), [&](int32_t rank) { return exchangeOnOwnStream(*joined[size_t(rank)]); }));
    }
}

TEST_CASE("messages of one pair that differ in nothing but their order keep it") {
  startNccl();
  Transports joined = joinAll(2);
  fake::fakeNcclSetLate(1);
  auto work = [&](int32_t rank) -> Status {
    NcclTransport &transport = *joined[size_t(rank)];
    std::vector<DeviceBuffer> buffers;
    for (int32_t i = 0; i < 6; ++i) { // two in a step
      HEDDLE_ASSIGN(DeviceBuffer buffer, filled(transport.device(), 64, uint8_t(rank == 0 ? i : 99)));
      buffers.push_back(std::move(buffer));
    }
    for (size_t i = 0; i < 6; i += 2) {
      Exchange step;
      for (size_t j : {i, i + 1})
        if (rank == 0)
          step.sends.push_back({1, buffers[j].data(), 64});
        else
          step.receives.push_back({0, buffers[j].data(), 64});
      HEDDLE_TRY(transport.exchange(step, nullptr));
    }
    HEDDLE_TRY(transport.wait(nullptr));
    for (size_t i = 0; i < 6; ++i)
      if (!holds(buffers[i], uint8_t(i)))
        return Status::internal("message " + std::to_string(i) + " has the bytes of another one");
    return {};
  };
  checkAll(onRanks({0, 1}, work));
}

TEST_CASE("texts of any length are gathered by rank") {
  startNccl();
  Transports joined = joinAll(3);
  auto textOf = [](int32_t rank) { return std::string(size_t(rank) * 9000, char('a' + rank)); };
  auto work = [&](int32_t rank) -> Status {
    for (int round = 0; round < 2; ++round) {
      HEDDLE_ASSIGN(const std::vector<std::string> gathered, joined[size_t(rank)]->gather(textOf(rank)));
      for (int32_t peer = 0; peer < 3; ++peer)
        if (gathered.size() != 3 || gathered[size_t(peer)] != textOf(peer))
          return Status::internal("not what rank " + std::to_string(peer) + " gave");
    }
    return {};
  };
  checkAll(onRanks(firstRanks(3), work));
}

TEST_CASE("a step is enqueued before others come, allocates nothing on the GPU, and waits for them on the stream") {
  startNccl();
  Transports joined = joinAll(2);
  fake::fakeNcclSetLate(1);
  DeviceBuffer sent = require(filled(joined[0]->device(), 64, 5));
  DeviceBuffer received = require(filled(joined[1]->device(), 64, 0));
  const int allocations = fake::fakeCudaCalls("cuMemAlloc_v2");
  require(joined[0]->exchange({{{1, sent.data(), 64}}, {}}, nullptr));
  require(joined[0]->exchange({}, nullptr)); // nothing is no step
  CHECK(!holds(received, 5));
  require(joined[1]->exchange({{}, {{0, received.data(), 64}}}, nullptr));
  CHECK(fake::fakeCudaCalls("cuMemAlloc_v2") == allocations);
  require(joined[0]->wait(nullptr));
  require(joined[1]->wait(nullptr));
  CHECK(holds(received, 5));
}

TEST_CASE("messages of ranks that have met this way are sent at once, others as nobody can be waited for") {
  startNccl();
  Transports joined = joinAll(3);
  struct Step {
    std::vector<std::pair<int32_t, int32_t>> ways;
    int atOnce; // messages, of both sides
  };
  const std::vector<Step> steps = {
      {{{0, 1}}, 0},        {{{0, 1}}, 2}, {{{0, 1}, {1, 0}}, 2}, {{{0, 1}, {1, 0}}, 4}, {{{0, 1}, {1, 2}, {2, 0}}, 2},
      {{{1, 2}, {2, 0}}, 4}};
  for (size_t number = 0; number < steps.size(); ++number) {
    CAPTURE(number);
    const int before = fake::fakeNcclAtOnce();
    checkAll(onRanks(firstRanks(3), [&](int32_t rank) -> Status {
      NcclTransport &transport = *joined[size_t(rank)];
      std::vector<DeviceBuffer> buffers;
      std::vector<uint8_t> expected;
      Exchange step;
      for (const auto &[from, to] : steps[number].ways) {
        if (from != rank && to != rank)
          continue;
        expected.push_back(uint8_t(1 + from * 16 + number));
        HEDDLE_ASSIGN(DeviceBuffer buffer, filled(transport.device(), 64, from == rank ? expected.back() : 0));
        buffers.push_back(std::move(buffer));
        if (from == rank)
          step.sends.push_back({to, buffers.back().data(), 64});
        else
          step.receives.push_back({from, buffers.back().data(), 64});
      }
      HEDDLE_TRY(transport.exchange(step, nullptr));
      HEDDLE_TRY(transport.wait(nullptr));
      for (size_t i = 0; i < buffers.size(); ++i)
        if (!holds(buffers[i], expected[i]))
          return Status::internal("message " + std::to_string(i) + " has other bytes");
      return {};
    }));
    CHECK(fake::fakeNcclAtOnce() - before == steps[number].atOnce);
  }
}

TEST_CASE("messages without bytes are left out on both sides") {
  startNccl();
  Transports joined = joinAll(2);
  require(joined[0]->exchange({{{1, nullptr, 0}}, {{1, nullptr, 0}}}, nullptr));
  require(joined[0]->wait(nullptr));
  CHECK(fake::fakeNcclCalls("ncclSend") == 0);
  CHECK(fake::fakeNcclCalls("ncclRecv") == 0);
}

TEST_CASE("wrong messages are refused before anything is sent, and then the rank has left") {
  startNccl();
  struct Wrong {
    int32_t peer;
    bool hasAddress;
    const char *words;
  };
  for (const Wrong &wrong : {Wrong{0, true, "rank 0 sends to rank 0, which is itself"},
                             {2, true, "rank 0 sends to rank 2, expected 0 to 1"},
                             {-1, true, "rank -1, expected 0 to 1"},
                             {1, false, "rank 1: 64 bytes at a null address"}}) {
    CAPTURE(wrong.words);
    Transports joined = joinAll(2);
    DeviceBuffer buffer = require(filled(joined[0]->device(), 64, 1));
    const Exchange step = {{{wrong.peer, wrong.hasAddress ? buffer.data() : nullptr, 64}}, {}};
    const Status refused = joined[0]->exchange(step, nullptr);
    CHECK(refused.code() == StatusCode::invalidArgument);
    CHECK_MESSAGE(says(refused, wrong.words), refused.str());
    CHECK(fake::fakeNcclCalls("ncclSend") == 0);
    CHECK(joined[0]->wait(nullptr).message() == refused.message());
    CHECK(joined[0]->gather("").status().message() == refused.message());
  }
}

TEST_CASE("a communicator of others serves, and is left as it is") {
  startNccl();
  const nccl::UniqueId id = require(NcclTransport::makeId());
  void *handles[3];
  for (int rank = 0; rank < 3; ++rank)
    handles[rank] = fake::fakeNcclCommunicator(&id, rank, 3, rank + 2);
  checkAll(onRanks(firstRanks(3), [&](int32_t rank) -> Status {
    HEDDLE_ASSIGN(auto transport, NcclTransport::borrow(handles[rank], {rank, 3}, kNoLimit));
    if (transport->rank() != rank || transport->ranks() != 3 || transport->device().info().ordinal != rank + 2)
      return Status::internal("not the place of the communicator");
    return exchangeOnOwnStream(*transport);
  }));
  CHECK(fake::fakeNcclCalls("ncclCommFinalize") + fake::fakeNcclCalls("ncclCommDestroy") +
            fake::fakeNcclCalls("ncclCommAbort") ==
        0);
  CHECK(fake::fakeNcclLive() == 3);
}

TEST_CASE("a communicator of another place, or of none, is refused") {
  startNccl();
  const nccl::UniqueId id = require(NcclTransport::makeId());
  void *handle = fake::fakeNcclCommunicator(&id, 1, 2, 1);
  const Status size = NcclTransport::borrow(handle, {1, 4}).status();
  CHECK(size.code() == StatusCode::invalidArgument);
  CHECK_MESSAGE(says(size, "it is of rank 1 of 2, expected rank 1 of 4"), size.str());
  CHECK(says(NcclTransport::borrow(handle, {0, 2}).status(), "expected rank 0 of 2"));
  CHECK(says(NcclTransport::borrow(handle, {2, 2}).status(), "got 2 of 2"));
  CHECK(says(NcclTransport::borrow(nullptr, {0, 2}).status(), "it is null"));
  int other = 0;
  const Status unknown = NcclTransport::borrow(&other, {0, 2}).status();
  CHECK_MESSAGE(says(unknown, "ncclCommCuDevice failed: invalid argument (as the test\\u000aordered)"), unknown.str());
}

TEST_CASE("two ranks on one GPU are refused on every rank, before anything is sent") {
  startNccl();
  const nccl::UniqueId id = require(NcclTransport::makeId());
  for (const Status &status : onRanks(firstRanks(3), [&](int32_t rank) -> Status {
         HEDDLE_ASSIGN(Device device, Device::open(rank == 2 ? 0 : rank));
         return NcclTransport::join(device, id, {rank, 3}, kNoLimit).status();
       })) {
    CHECK(status.code() == StatusCode::invalidArgument);
    CHECK_MESSAGE(says(status, "ranks 0, 2 have the same GPU, 00000000:1b:00.0 of "), status.str());
  }
  CHECK(fake::fakeNcclCalls("ncclSend") == 0);
}

TEST_CASE("what NCCL reports meanwhile ends the rank, with its words") {
  startNccl();
  Transports joined = joinAll(2);
  fake::fakeNcclSetLate(1);
  DeviceBuffer buffer = require(filled(joined[0]->device(), 64, 1));
  require(joined[0]->exchange(oneEach(1, buffer), nullptr));
  fake::fakeNcclAsyncError(0, nccl::kRemoteError);
  const Status failed = joined[0]->wait(nullptr);
  CHECK(failed.code() == StatusCode::unavailable);
  CHECK_MESSAGE(says(failed, "remote process exited"), failed.str());
  awaitCalls("ncclCommAbort", 1);
  CHECK(joined[0]->exchange(oneEach(1, buffer), nullptr).message() == failed.message());
  awaitLive(1);
}

TEST_CASE("calls that NCCL refuses end the rank; the group is closed") {
  for (const char *symbol : {"ncclGroupStart", "ncclSend", "ncclGroupEnd"}) {
    CAPTURE(symbol);
    startNccl();
    Transports joined = joinAll(2);
    DeviceBuffer buffer = require(filled(joined[0]->device(), 64, 1));
    fake::fakeNcclFail(symbol, nccl::kSystemError, 0);
    const Status failed = joined[0]->exchange(oneEach(1, buffer), nullptr);
    CHECK(failed.code() == StatusCode::unavailable);
    CHECK_MESSAGE(says(failed, "failed: unhandled system error"), failed.str());
    fake::fakeNcclFail(symbol, 0, 0);
    CHECK(joined[0]->wait(nullptr).message() == failed.message());
    joined.clear();
    checkAll(onRanks({0, 1}, [id = require(NcclTransport::makeId())](int32_t rank) {
      return joinRank(id, rank, 2).status(); // another group, of the same threads' making
    }));
  }
}

TEST_CASE("a rank that another thread takes out waits no more, and says why") {
  for (int isLate : {0, 1}) { // in the exchange, or in the wait behind it
    CAPTURE(isLate);
    startNccl();
    Transports joined = joinAll(2);
    fake::fakeNcclSetLate(isLate);
    DeviceBuffer buffer = require(filled(joined[0]->device(), 64, 1));
    Status status;
    std::thread waiting([&] {
      status = joined[0]->exchange(oneEach(1, buffer), nullptr);
      if (status.isOk())
        status = joined[0]->wait(nullptr);
    });
    while (fake::fakeNcclCalls("ncclSend") == 0)
      std::this_thread::yield();
    joined[0]->abort("the program ends");
    waiting.join();
    CHECK(status.code() == StatusCode::unavailable);
    CHECK_MESSAGE(says(status, "rank 0 leaves: the program ends"), status.str());
    joined[0]->abort("once more");
    CHECK(joined[0]->wait(nullptr).message() == status.message());
    awaitCalls("ncclCommAbort", 2); // and of what shares its connections
    CHECK(fake::fakeNcclCalls("ncclCommAbort") == 2);
  }
}

TEST_CASE("communicators of its own end with a transport") {
  startNccl();
  joinAll(2).clear();
  CHECK(fake::fakeNcclCalls("ncclCommFinalize") == 2);
  CHECK(fake::fakeNcclCalls("ncclCommDestroy") == 4); // each with what shares its connections
  CHECK(fake::fakeNcclCalls("ncclCommAbort") == 0);
  CHECK(fake::fakeNcclLive() == 0);
  CHECK(fake::fakeCudaLiveAllocations() == 0);
}
