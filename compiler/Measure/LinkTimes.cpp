#include "compiler/Measure/LinkTimes.h"

#include "compiler/Io/AtomicFile.h"
#include "compiler/Measure/LinkRank.h"
#include "runtime/Core/ReadFile.h"
#include "runtime/Distributed/Patience.h"
#include "runtime/Distributed/RankPlaces.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

namespace heddle {
namespace {

constexpr const char *kMeasure = "measure links: ";

/// What one rank measures; all have the same in the end.
Status measureAs(LinkRank &rank, const std::vector<int64_t> &sizes, LinkTimes &times) {
  const DeviceInfo &own = rank.device().info();
  const auto ofAll = [&](const std::string &mine) { return rank.gather(mine); };
  HEDDLE_ASSIGN(const std::vector<std::string> names, ofAll(own.identity.deviceName));
  HEDDLE_ASSIGN(const std::vector<std::string> places, ofAll(own.pciBusId));
  HEDDLE_ASSIGN(const std::vector<std::string> machines, ofAll(machineName()));
  for (size_t gpu = 0; gpu < names.size(); ++gpu)
    times.gpus.push_back({names[gpu], places[gpu], machines[gpu]});
  HEDDLE_TRY(rank.warm());
  for (int64_t bytes : sizes) {
    HEDDLE_ASSIGN(const double us, rank.measure(bytes));
    times.samples.push_back({bytes, us});
  }
  fitLinks(times);
  return {};
}

int64_t mostOf(const std::vector<int64_t> &sizes) { return *std::max_element(sizes.begin(), sizes.end()); }

/// The ranks' threads: the first failure is everybody's, and nobody waits for a rank that has failed.
class LinkThreads {
public:
  LinkThreads(int32_t count, const std::vector<int64_t> &sizes) : sizes(sizes), ranks(size_t(count)) {}

  Result<LinkTimes> measure(const nccl::UniqueId &id) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([this, &id, rank] {
        const Status status = runRank(id, rank);
        if (!status.isOk())
          fail(status);
      });
    for (std::thread &thread : threads)
      thread.join();
    return failure.isOk() ? Result<LinkTimes>(measured) : failure;
  }

private:
  Status runRank(const nccl::UniqueId &id, size_t rank) {
    HEDDLE_ASSIGN(auto opened, LinkRank::open(id, {int32_t(rank), int32_t(ranks.size())}, int(rank), mostOf(sizes)));
    LinkRank &own = *opened;
    {
      std::lock_guard<std::mutex> lock(mutex);
      HEDDLE_TRY(failure);
      ranks[rank] = std::move(opened);
    }
    LinkTimes times;
    HEDDLE_TRY(measureAs(own, sizes, times));
    std::unique_ptr<LinkRank> done; // ranks part at the same time
    std::lock_guard<std::mutex> lock(mutex);
    done = std::move(ranks[rank]);
    measured = times;
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

  const std::vector<int64_t> &sizes;
  std::mutex mutex; ///< guards the rest, but what the ranks do themselves
  std::vector<std::unique_ptr<LinkRank>> ranks;
  LinkTimes measured;
  Status failure;
};

Status writeMeeting(const std::string &path, const nccl::UniqueId &id) {
  if (std::filesystem::exists(path))
    return Status::invalidArgument(kMeasure + ("'" + path) +
                                   "' exists; it is where ranks meet: remove it if no other measurement runs");
  return writeFileAtomically(path, {id.internal, sizeof id.internal});
}

Result<nccl::UniqueId> readMeeting(const std::string &path) {
  for (Patience patience(kDefaultRankLimit);; patience.pause()) {
    nccl::UniqueId id;
    const Result<std::string> read = readTextFile(path, {"meeting file", sizeof id.internal});
    if (!read && read.status().code() != StatusCode::notFound)
      return read.status();
    if (read && read->size() == sizeof id.internal) {
      std::memcpy(id.internal, read->data(), sizeof id.internal);
      return id;
    }
    if (patience.isOver())
      return Status::unavailable(kMeasure + ("rank 0 has not made '" + path) + "' in time");
  }
}

/// Removed when it goes.
struct MeetingFile {
  std::string path;
  ~MeetingFile() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove(path, ignored);
  }
};

} // namespace

/// The least share of the largest message's time that bytes must explain for a rate and a latency to be told apart.
constexpr double kShareOfBytes = 1.0 / 16;

void fitLinks(LinkTimes &times) {
  double one = 0, x = 0, xx = 0, y = 0, xy = 0; // weighted sums of 1, bytes and us
  double largest = 0;
  for (const LinkSample &sample : times.samples) {
    const double weight = 1 / (sample.us * sample.us), bytes = double(sample.bytes);
    largest = std::max(largest, bytes);
    one += weight, x += weight * bytes, xx += weight * bytes * bytes;
    y += weight * sample.us, xy += weight * bytes * sample.us;
  }
  const double spread = one * xx - x * x;
  double latency = spread > 0 ? (y * xx - x * xy) / spread : 0;
  latency = std::max(latency, 0.0);
  if ((xy - latency * x) / xx * largest < kShareOfBytes / (1 - kShareOfBytes) * latency)
    latency = 0; // larger messages took no longer than rounding and noise
  times.latencyUs = latency;
  times.gbps = xx / (xy - latency * x) * 1e-3;
}

LinkRecord recordOf(const LinkTimes &times) {
  std::set<std::string> names, machines;
  for (const LinkGpu &gpu : times.gpus)
    names.insert(gpu.name), machines.insert(gpu.machine);
  LinkRecord record;
  for (const std::string &name : names)
    record.deviceName += (record.deviceName.empty() ? "" : ", ") + name;
  record.ranks = int64_t(times.gpus.size());
  record.hosts = int64_t(machines.size());
  record.gbps = times.gbps;
  record.latencyUs = times.latencyUs;
  for (const LinkSample &sample : times.samples) {
    char text[64];
    std::snprintf(text, sizeof text, "%lld:%.1f", static_cast<long long>(sample.bytes), sample.us);
    record.messages += (record.messages.empty() ? "" : " ") + std::string(text);
  }
  record.nccl = times.nccl;
  return record;
}

Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes) {
  HEDDLE_ASSIGN(const int count, Device::count());
  if (count < 2)
    return Status::unavailable(kMeasure + ("the driver sees " + std::to_string(count)) +
                               (count == 1 ? " GPU" : " GPUs") +
                               ", expected two or more; CUDA_VISIBLE_DEVICES may hide some");
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  HEDDLE_ASSIGN(const nccl::UniqueId id, NcclTransport::makeId());
  HEDDLE_ASSIGN(LinkTimes times, LinkThreads(count, sizes).measure(id));
  times.nccl = nccl->versionText();
  return times;
}

Result<LinkTimes> measureLinks(const std::vector<int64_t> &sizes, const LinkProcess &process) {
  HEDDLE_ASSIGN(const int count, Device::count());
  if (count < 1)
    return Status::unavailable(kMeasure + std::string("the driver sees no GPU"));
  HEDDLE_ASSIGN(const NcclLibrary *nccl, NcclLibrary::open());
  MeetingFile made;
  nccl::UniqueId id;
  if (process.rank == 0) {
    HEDDLE_ASSIGN(id, NcclTransport::makeId());
    HEDDLE_TRY(writeMeeting(process.meetingFile, id));
    made.path = process.meetingFile;
  } else {
    HEDDLE_ASSIGN(id, readMeeting(process.meetingFile));
  }
  HEDDLE_ASSIGN(auto rank, LinkRank::open(id, {process.rank, process.ranks}, process.rank % count, mostOf(sizes)));
  LinkTimes times;
  HEDDLE_TRY(measureAs(*rank, sizes, times));
  times.nccl = nccl->versionText();
  return times;
}

} // namespace heddle
