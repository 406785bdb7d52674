// What the tests of NCCL share: stand-ins of the driver and of NCCL as the process's own, and ranks as threads.
#ifndef HEDDLE_TESTS_UNIT_NCCL_FIXTURE_H
#define HEDDLE_TESTS_UNIT_NCCL_FIXTURE_H

#include "support/Places.h"
#include "device_fixture.h"
#include "fake_nccl/FakeNccl.h"
#include "runtime/Distributed/NcclTransport.h"

#include <functional>
#include <thread>

namespace heddle::test {

constexpr auto kNoLimit = std::chrono::hours(1); // of tests in which nobody is lost

inline void startNccl(const char *library = test::places().fakeNccl) {
  startFake();
  setenv("HEDDLE_NCCL_LIBRARY", library, 1);
  fake::fakeNcclReset();
  fake::fakeCudaSetDevices(8);
}

// NCCL is told to end communicators on threads of their own.
inline void awaitCalls(const char *symbol, int calls) {
  while (fake::fakeNcclCalls(symbol) < calls)
    std::this_thread::yield();
}

inline void awaitLive(int communicators) {
  while (fake::fakeNcclLive() > communicators)
    std::this_thread::yield();
}

// `work` of each of these ranks, on a thread of its own; what it returned, by place in `ranks`.
using RankWork = std::function<Status(int32_t rank)>;
inline std::vector<Status> onRanks(const std::vector<int32_t> &ranks, const RankWork &work) {
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = work(ranks[i]); });
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

inline std::vector<int32_t> firstRanks(int32_t count) {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < count; ++rank)
    ranks.push_back(rank);
  return ranks;
}

inline Result<std::unique_ptr<NcclTransport>> joinRank(const nccl::UniqueId &id, int32_t rank, int32_t ranks,
                                                       std::chrono::milliseconds limit = kNoLimit) {
  HEDDLE_ASSIGN(Device device, Device::open(rank));
  return NcclTransport::join(device, id, {rank, ranks}, limit);
}

// Of `ranks` that have joined, while all of them live.
using Transports = std::vector<std::unique_ptr<NcclTransport>>;
inline Transports joinAll(int32_t ranks, std::chrono::milliseconds limit = kNoLimit) {
  const nccl::UniqueId id = require(NcclTransport::makeId());
  Transports joined{size_t(ranks)};
  fake::fakeNcclAwait(ranks + 1); // more than there are: no time passes until all have come
  for (const Status &status : onRanks(firstRanks(ranks), [&](int32_t rank) {
         HEDDLE_ASSIGN(joined[size_t(rank)], joinRank(id, rank, ranks, limit));
         return Status();
       }))
    require(status);
  fake::fakeNcclAwait(0);
  return joined;
}

// Memory of a GPU with bytes that tell rank, peer and number of a message.
inline Result<DeviceBuffer> filled(const Device &device, int64_t bytes, uint8_t seed) {
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
  std::string content(size_t(bytes), '\0');
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = char(uint8_t(seed + i * 7));
  HEDDLE_TRY(buffer.copyFrom(content.data(), bytes));
  return buffer;
}

inline bool holds(const DeviceBuffer &buffer, uint8_t seed) {
  const auto *content = static_cast<const uint8_t *>(buffer.data());
  for (int64_t i = 0; i < buffer.bytes(); ++i)
    if (content[i] != uint8_t(seed + i * 7))
      return false;
  return true;
}

inline bool says(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

} // namespace heddle::test

#endif
