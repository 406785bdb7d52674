#include "compiler/Measure/LinkRank.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

constexpr int64_t kChunkBytes = int64_t(1) << 24; ///< of host memory, with which bytes are made and compared
constexpr size_t kRounds = 7;
constexpr int64_t kLeastSteps = 4, kMostSteps = 16; ///< of a round
/// Filling them takes an H200 some 2.1 ms, longer than the host takes for the most steps; of less than 48 MiB at a time fewer are.
constexpr int64_t kBytesAhead = int64_t(6) << 30;
constexpr int64_t kMostFills = 128;
/// A GPU that was idle takes twice as long for each message until its clocks are those of work.
constexpr double kWarmUs = 300e3;
constexpr int kMostWarmRounds = 32;

uint64_t scrambled(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// Which bytes a rank sends as a message of a size, from `offset` on.
void fillChunk(std::vector<uint64_t> &chunk, int32_t rank, int64_t bytes, int64_t offset) {
  const uint64_t seed = scrambled(uint64_t(rank) ^ uint64_t(bytes) << 16);
  for (size_t i = 0; i < chunk.size(); ++i)
    chunk[i] = scrambled(seed + uint64_t(offset) / sizeof(uint64_t) + i);
}

/// f(chunk, offset, bytes) for what `rank` sends.
template <class F> Status forChunks(int64_t bytes, int32_t rank, F &&f) {
  for (int64_t offset = 0; offset < bytes; offset += kChunkBytes) {
    std::vector<uint64_t> chunk(size_t(std::min(kChunkBytes, bytes - offset)) / sizeof(uint64_t));
    fillChunk(chunk, rank, bytes, offset);
    HEDDLE_TRY(f(chunk, offset, int64_t(chunk.size() * sizeof(uint64_t))));
  }
  return {};
}

} // namespace

Result<std::unique_ptr<LinkRank>> LinkRank::open(const nccl::UniqueId &id, RankOf place, int ordinal,
                                                 int64_t mostBytes) {
  HEDDLE_ASSIGN(Device device, Device::open(ordinal));
  HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(device));
  HEDDLE_ASSIGN(DeviceBuffer sent, DeviceBuffer::allocate(device, mostBytes));
  HEDDLE_ASSIGN(DeviceBuffer received, DeviceBuffer::allocate(device, mostBytes));
  HEDDLE_ASSIGN(auto transport, NcclTransport::join(device, id, place));
  return std::unique_ptr<LinkRank>(
      new LinkRank{device, std::move(stream), std::move(sent), std::move(received), std::move(transport)});
}

Status LinkRank::exchange(int64_t bytes) {
  return transport->exchange({{{next(), sent.data(), uint64_t(bytes)}}, {{before(), received.data(), uint64_t(bytes)}}},
                             stream.handle());
}

Status LinkRank::fill(int64_t bytes) {
  HEDDLE_TRY(received.fillBytes(0, stream.handle()));
  return forChunks(bytes, transport->rank(), [&](const std::vector<uint64_t> &chunk, int64_t offset, int64_t size) {
    const Status status = sent.copyFrom(chunk.data(), size, offset, stream.handle());
    return status.isOk() ? gpu.synchronize(stream.handle()) : status;
  });
}

Status LinkRank::compare(int64_t bytes) {
  return forChunks(bytes, before(), [&](const std::vector<uint64_t> &chunk, int64_t offset, int64_t size) -> Status {
    std::vector<uint64_t> came(chunk.size());
    HEDDLE_TRY(received.copyTo(came.data(), size, offset, stream.handle()));
    HEDDLE_TRY(gpu.synchronize(stream.handle()));
    if (came == chunk)
      return {};
    return Status::internal("measure links: of " + std::to_string(bytes) + " bytes that rank " +
                            std::to_string(before()) + " sent, rank " + std::to_string(transport->rank()) +
                            " has others near byte " + std::to_string(offset));
  });
}

/// One message, byte for byte.
Status LinkRank::check(int64_t bytes) {
  HEDDLE_TRY(fill(bytes));
  HEDDLE_TRY(exchange(bytes));
  HEDDLE_TRY(transport->wait(stream.handle()));
  return compare(bytes);
}

/// Keeps the GPU busy while the host enqueues steps: a small message costs the host more than the links.
Status LinkRank::occupy() {
  const int64_t fills = std::clamp<int64_t>(kBytesAhead / received.bytes(), 1, kMostFills);
  for (int64_t fill = 0; fill < fills; ++fill)
    HEDDLE_TRY(received.fillBytes(0, stream.handle()));
  return {};
}

/// The time of one step, by the clock of the GPU; the first step of a round is not counted, in it ranks meet.
Result<double> LinkRank::time(int64_t bytes, int64_t steps) {
  HEDDLE_ASSIGN(DeviceEvent begin, DeviceEvent::create(gpu));
  HEDDLE_ASSIGN(DeviceEvent end, DeviceEvent::create(gpu));
  HEDDLE_TRY(occupy());
  HEDDLE_TRY(exchange(bytes));
  HEDDLE_TRY(begin.record(stream.handle()));
  for (int64_t step = 0; step < steps; ++step)
    HEDDLE_TRY(exchange(bytes));
  HEDDLE_TRY(end.record(stream.handle()));
  HEDDLE_TRY(transport->wait(stream.handle()));
  HEDDLE_ASSIGN(const double us, end.elapsedUsSince(begin));
  return us / double(steps);
}

Result<double> LinkRank::slowest(double us) {
  std::string mine(sizeof us, '\0');
  std::memcpy(mine.data(), &us, sizeof us);
  HEDDLE_ASSIGN(const std::vector<std::string> all, gather(mine));
  for (const std::string &theirs : all) {
    double their = 0;
    std::memcpy(&their, theirs.data(), std::min(theirs.size(), sizeof their));
    us = std::max(us, their);
  }
  return us;
}

Status LinkRank::warm() {
  double us = 0;
  for (int round = 0; us < kWarmUs && round < kMostWarmRounds; ++round) {
    HEDDLE_ASSIGN(const double ofStep, time(received.bytes(), kLeastSteps));
    HEDDLE_ASSIGN(const double ofSlowest, slowest(ofStep)); // all ranks go on, or none
    us += ofSlowest * double(kLeastSteps);
  }
  return {};
}

Result<double> LinkRank::measure(int64_t bytes) {
  HEDDLE_TRY(check(bytes));
  const int64_t steps = std::clamp((int64_t(1) << 31) / bytes, kLeastSteps, kMostSteps);
  std::vector<double> rounds;
  for (size_t round = 0; round < kRounds; ++round) {
    HEDDLE_ASSIGN(const double us, time(bytes, steps));
    rounds.push_back(us);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return slowest(rounds[kRounds / 2]);
}

} // namespace heddle
