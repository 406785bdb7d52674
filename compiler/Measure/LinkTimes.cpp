//===- LinkTimes.cpp - a ring of threads ----------------------------------===//
#include "compiler/Measure/LinkTimes.h"

#include "runtime/Distributed/NcclTransport.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace heddle {
namespace {

constexpr int64_t kChunkBytes = int64_t(1) << 24; ///< of host memory, with which bytes are made and compared
constexpr size_t kRounds = 7;

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

class LinkRank {
public:
  static Result<std::unique_ptr<LinkRank>> open(const nccl::UniqueId &id, RankOf place, int64_t mostBytes) {
    HEDDLE_ASSIGN(Device device, Device::open(place.rank));
    HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(device));
    HEDDLE_ASSIGN(DeviceBuffer sent, DeviceBuffer::allocate(device, mostBytes));
    HEDDLE_ASSIGN(DeviceBuffer received, DeviceBuffer::allocate(device, mostBytes));
    HEDDLE_ASSIGN(auto transport, NcclTransport::join(device, id, place));
    return std::unique_ptr<LinkRank>(
        new LinkRank{device, std::move(stream), std::move(sent), std::move(received), std::move(transport)});
  }

  Result<double> measure(int64_t bytes) {
    HEDDLE_TRY(check(bytes));
    const int64_t steps = std::clamp<int64_t>((int64_t(1) << 31) / bytes, 4, 64);
    std::vector<double> rounds;
    for (size_t round = 0; round < kRounds; ++round) {
      HEDDLE_ASSIGN(const double us, time(bytes, steps));
      rounds.push_back(us);
    }
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    return rounds[kRounds / 2];
  }

  void leave(const std::string &why) { transport->abort(why); }

private:
  LinkRank(Device device, DeviceStream stream, DeviceBuffer sent, DeviceBuffer received,
           std::unique_ptr<NcclTransport> transport)
      : device(device), stream(std::move(stream)), sent(std::move(sent)), received(std::move(received)),
        transport(std::move(transport)) {}

  int32_t next() const { return (transport->rank() + 1) % transport->ranks(); }
  int32_t before() const { return (transport->rank() + transport->ranks() - 1) % transport->ranks(); }

  Status exchange(int64_t bytes) {
    return transport->exchange(
        {{{next(), sent.data(), uint64_t(bytes)}}, {{before(), received.data(), uint64_t(bytes)}}}, stream.handle());
  }

  template <class F> Status forChunks(int64_t bytes, int32_t rank, F &&f) {
    for (int64_t offset = 0; offset < bytes; offset += kChunkBytes) {
      std::vector<uint64_t> chunk(size_t(std::min(kChunkBytes, bytes - offset)) / sizeof(uint64_t));
      fillChunk(chunk, rank, bytes, offset);
      HEDDLE_TRY(f(chunk, offset, int64_t(chunk.size() * sizeof(uint64_t))));
    }
    return {};
  }

  /// One message, byte for byte.
  Status check(int64_t bytes) {
    using Chunk = std::vector<uint64_t>;
    HEDDLE_TRY(forChunks(bytes, transport->rank(), [&](const Chunk &chunk, int64_t offset, int64_t size) {
      const Status status = sent.copyFrom(chunk.data(), size, offset, stream.handle());
      return status.isOk() ? device.synchronize(stream.handle()) : status;
    }));
    HEDDLE_TRY(received.fillBytes(0, stream.handle()));
    HEDDLE_TRY(exchange(bytes));
    HEDDLE_TRY(transport->wait(stream.handle()));
    return forChunks(bytes, before(), [&](const Chunk &chunk, int64_t offset, int64_t size) -> Status {
      Chunk came(chunk.size());
      HEDDLE_TRY(received.copyTo(came.data(), size, offset, stream.handle()));
      HEDDLE_TRY(device.synchronize(stream.handle()));
      if (came == chunk)
        return {};
      return Status::internal("measure links: of " + std::to_string(bytes) + " bytes that rank " +
                              std::to_string(before()) + " sent, rank " + std::to_string(transport->rank()) +
                              " has others near byte " + std::to_string(offset));
    });
  }

  /// Of one step, by the clock of the GPU; the first step of a round is not counted, in it ranks meet.
  Result<double> time(int64_t bytes, int64_t steps) {
    HEDDLE_ASSIGN(DeviceEvent begin, DeviceEvent::create(device));
    HEDDLE_ASSIGN(DeviceEvent end, DeviceEvent::create(device));
    HEDDLE_TRY(exchange(bytes));
    HEDDLE_TRY(begin.record(stream.handle()));
    for (int64_t step = 0; step < steps; ++step)
      HEDDLE_TRY(exchange(bytes));
    HEDDLE_TRY(end.record(stream.handle()));
    HEDDLE_TRY(transport->wait(stream.handle()));
    HEDDLE_ASSIGN(const double us, end.elapsedUsSince(begin));
    return us / double(steps);
  }

  Device device;
  DeviceStream stream;
  DeviceBuffer sent, received;
  std::unique_ptr<NcclTransport> transport;
};

/// The ranks' threads: the first failure is everybody's, and nobody waits for a rank that has failed.
class LinkRing {
public:
  explicit LinkRing(int32_t ranks) : ranks(size_t(ranks)) {}

  Result<std::vector<LinkSample>> measure(const nccl::UniqueId &id, const std::vector<int64_t> &sizes) {
    for (int64_t bytes : sizes)
      samples.push_back({bytes, 0});
    const int64_t most = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([this, &id, rank, most] {
        const Status status = runRank(id, rank, most);
        if (!status.isOk())
          fail(status);
      });
    for (std::thread &thread : threads)
      thread.join();
    return failure.isOk() ? Result<std::vector<LinkSample>>(samples) : failure;
  }

private:
  Status runRank(const nccl::UniqueId &id, size_t rank, int64_t most) {
    HEDDLE_ASSIGN(auto opened, LinkRank::open(id, {int32_t(rank), int32_t(ranks.size())}, most));
    LinkRank &own = *opened;
    {
      std::lock_guard<std::mutex> lock(mutex);
      HEDDLE_TRY(failure);
      ranks[rank] = std::move(opened);
    }
    for (LinkSample &sample : samples) {
      HEDDLE_ASSIGN(const double us, own.measure(sample.bytes));
      std::lock_guard<std::mutex> lock(mutex);
      sample.us = std::max(sample.us, us);
    }
    std::unique_ptr<LinkRank> done; // ranks part at the same time
    std::lock_guard<std::mutex> lock(mutex);
    done = std::move(ranks[rank]);
    return {};
  }

  void fail(const Status &status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure.isOk())
      return;
    failure = status;
    for (const std::unique_ptr<LinkRank> &rank : ranks)
      if (rank)
        rank->leave(status.message());
  }

  std::mutex mutex; ///< guards all of it but what the ranks do themselves
  std::vector<std::unique_ptr<LinkRank>> ranks;
  std::vector<LinkSample> samples;
  Status failure;
};

} // namespace

void fitLinks(LinkTimes &times) {
  double one = 0, x = 0, xx = 0, y = 0, xy = 0; // weighted sums of 1, bytes and us
  for (const LinkSample &sample : times.samples) {
    const double weight = 1 / (sample.us * sample.us), bytes = double(sample.bytes);
    one += weight, x += weight * bytes, xx += weight * bytes * bytes;
    y += weight * sample.us, xy += weight * bytes * sample.us;
  }
  const double spread = one * xx - x * x;
  double latency = spread > 0 ? (y * xx - x * xy) / spread : 0;
  latency = std::max(latency, 0.0);
  times.latencyUs = latency;
  times.gbps = xx / (xy - latency * x) * 1e-3;
}

Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes) {
  HEDDLE_ASSIGN(const int count, Device::count());
  if (count < 2)
    return Status::unavailable("measure links: the driver sees " + std::to_string(count) +
                               (count == 1 ? " GPU" : " GPUs") +
                               ", expected two or more; CUDA_VISIBLE_DEVICES may hide some");
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  LinkTimes times;
  times.nccl = nccl->versionText();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    HEDDLE_ASSIGN(Device device, Device::open(ordinal));
    times.gpus.push_back(device.info());
  }
  HEDDLE_ASSIGN(const nccl::UniqueId id, NcclTransport::makeId());
  HEDDLE_ASSIGN(times.samples, LinkRing(count).measure(id, sizes));
  fitLinks(times);
  return times;
}

} // namespace heddle
