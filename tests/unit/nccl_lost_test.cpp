//===- nccl_lost_test.cpp - ranks that do not come --------------------------===//
// Time passes here by what waits for it only (StandingClock), and nobody waits in vain before all have come who will
// (fakeNcclAwait): the limit is reached where somebody is missing, and only there.
#include "nccl_fixture.h"
#include "support/StandingClock.h"

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr auto kLimit = std::chrono::seconds(2);

// A ring hop: to the next rank, from the one before.
Status hop(NcclTransport &transport, DeviceBuffer &sent, DeviceBuffer &received) {
  const int32_t ranks = transport.ranks(), next = (transport.rank() + 1) % ranks;
  const int32_t before = (transport.rank() + ranks - 1) % ranks;
  const Exchange step = {{{next, sent.data(), uint64_t(sent.bytes())}},
                         {{before, received.data(), uint64_t(received.bytes())}}};
  HEDDLE_TRY(transport.exchange(step, nullptr));
  return transport.wait(nullptr);
}

Status hops(NcclTransport &transport, int count) {
  HEDDLE_ASSIGN(DeviceBuffer sent, filled(transport.device(), 64, 1));
  HEDDLE_ASSIGN(DeviceBuffer received, filled(transport.device(), 64, 2));
  for (int i = 0; i < count; ++i)
    HEDDLE_TRY(hop(transport, sent, received));
  return {};
}

// Outlives the communicators of a test: NCCL ends them on threads, for which the clock here does not wait.
struct AllEnd {
  AllEnd() { startNccl(); }
  ~AllEnd() { awaitLive(0); }
};

void checkLost(const Status &status, const std::string &words) {
  CHECK(status.code() == StatusCode::unavailable);
  CHECK_MESSAGE(says(status, words), status.str());
  CHECK_MESSAGE(says(status, "waited 2 s for"), status.str());
}

} // namespace

TEST_CASE("a group that does not become complete is given up") {
  const AllEnd end;
  const nccl::UniqueId id = require(NcclTransport::makeId());
  fake::fakeNcclAwait(2);
  for (const Status &status : onRanks({0, 1}, [&](int32_t rank) { return joinRank(id, rank, 3, kLimit).status(); }))
    checkLost(status, "join ranks: waited 2 s for all of 3 ranks to come");
  awaitLive(0);
  CHECK(fake::fakeNcclCalls("ncclCommAbort") == 2);
}

TEST_CASE("a rank that dies at a step is named by who exchanges with it, where NCCL waits and where the stream does") {
  for (int isLate : {0, 1}) {
    CAPTURE(isLate);
    const AllEnd end;
    Transports joined = joinAll(3, kLimit);
    fake::fakeNcclSetLate(isLate);
    fake::fakeNcclDie(2, 2); // its first operation found places, its first hop goes well
    fake::fakeNcclAwait(3);
    const auto statuses = onRanks(firstRanks(3), [&](int32_t rank) { return hops(*joined[size_t(rank)], 2); });
    checkLost(statuses[0],
              isLate ? "wait: waited 2 s for ranks 1, 2 in step 2 of rank 0" : "exchange: waited 2 s for ranks 1, 2");
    checkLost(statuses[1], isLate ? "ranks 0, 2 in step 2 of rank 1" : "ranks 0, 2");
    awaitCalls("ncclCommAbort", 3);
    CHECK(joined[0]->gather("").status().message() == statuses[0].message());
    CHECK(says(joined[1]->wait(nullptr), "this rank has left its communicator"));
  }
}

TEST_CASE("a rank is no more than so many steps ahead of its GPU, and waits for others no longer than the limit") {
  const AllEnd end;
  Transports joined = joinAll(2, kLimit);
  fake::fakeNcclSetLate(1);
  DeviceBuffer sent = require(filled(joined[0]->device(), 64, 1));
  Status status;
  int steps = 0;
  for (; status.isOk() && steps < 1000; ++steps)
    status = joined[0]->exchange({{{1, sent.data(), 64}}, {}}, nullptr);
  CHECK(steps == 65);
  checkLost(status, "exchange: waited 2 s for rank 1 in step 1 of rank 0");
}

TEST_CASE("gathering names those of whom nothing has come") {
  for (int isLate : {0, 1}) {
    CAPTURE(isLate);
    const AllEnd end;
    Transports joined = joinAll(4, kLimit);
    fake::fakeNcclSetLate(isLate);
    fake::fakeNcclAwait(3);
    for (const Status &status :
         onRanks({0, 2, 3}, [&](int32_t rank) { return joined[size_t(rank)]->gather("here").status(); }))
      checkLost(status, "gather: waited 2 s for rank 1;");
  }
}

TEST_CASE("a communicator of others is called no more, and left to its owner") {
  startNccl();
  const nccl::UniqueId id = require(NcclTransport::makeId());
  Transports borrowed{2};
  for (const Status &status : onRanks({0, 1}, [&](int32_t rank) -> Status {
         HEDDLE_ASSIGN(borrowed[size_t(rank)],
                       NcclTransport::borrow(fake::fakeNcclCommunicator(&id, rank, 2, rank), {rank, 2}, kNoLimit));
         return {};
       }))
    require(status);
  Status lost;
  const int before = fake::fakeNcclCalls("ncclGroupEnd");
  std::thread waiting([&] { lost = hops(*borrowed[0], 1); }); // NCCL does not return
  while (fake::fakeNcclCalls("ncclGroupEnd") == before)
    std::this_thread::yield();
  moveClock(2 * kNoLimit);
  waiting.join();
  CHECK(lost.code() == StatusCode::unavailable);
  CHECK_MESSAGE(says(lost, "exchange: waited 3600 s for rank 1; this rank calls its communicator no more; it is its "
                           "owner's to abort"),
                lost.str());
  CHECK(hops(*borrowed[0], 1).message() == lost.message());
  borrowed.clear();
  CHECK(fake::fakeNcclCalls("ncclCommAbort") == 0);
  CHECK(fake::fakeNcclLive() == 2);
}

TEST_CASE(
    "a rank whose peer is stopped ends and leaves all the same, and what NCCL still holds ends when the peer goes on") {
  for (bool isLeft : {false, true}) {
    CAPTURE(isLeft);
    const AllEnd end;
    Transports joined = joinAll(2, kLimit);
    fake::fakeNcclStop(1);
    if (isLeft)
      joined[0]->abort("the program ends");
    joined[0].reset();
    awaitCalls(isLeft ? "ncclCommAbort" : "ncclCommDestroy", 1);
    CHECK(fake::fakeNcclLive() == 2);
    fake::fakeNcclStop(-1);
    awaitLive(1);
  }
}

TEST_CASE("kernels of a rank may take longer than others may") {
  const AllEnd end;
  Transports joined = joinAll(2, kLimit);
  fake::fakeNcclSetLate(1);
  void *kernel = fake::fakeCudaHold(nullptr);
  Status waited;
  std::thread waiting([&] { waited = hops(*joined[0], 1); });
  auto asked = [] { return fake::fakeCudaCalls("cuEventQuery"); };
  while (asked() == 0)
    std::this_thread::yield();
  moveClock(2 * kLimit);
  for (const int before = asked(); asked() < before + 10;)
    std::this_thread::yield();
  fake::fakeCudaRelease(kernel);
  CHECK(hops(*joined[1], 1).isOk());
  waiting.join();
  CHECK_MESSAGE(waited.isOk(), waited.str());
}
