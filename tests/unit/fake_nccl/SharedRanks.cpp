//===- SharedRanks.cpp - files and rings ------------------------------------===//
#include "SharedRanks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace heddle::fakenccl {
namespace {

// A message is its length and its bytes.
using Length = uint64_t;
constexpr size_t kLengthBytes = sizeof(Length);

// Bytes [at, at + bytes) of all that ever went this way.
template <class Use> void forEachRun(uint64_t at, size_t bytes, Use use) {
  for (size_t done = 0; done < bytes;) {
    const size_t place = size_t((at + done) % kRingBytes), run = std::min(bytes - done, kRingBytes - place);
    use(place, done, run);
    done += run;
  }
}

} // namespace

std::string SharedRanks::newPath() {
  const char *folder = std::getenv("HEDDLE_FAKE_NCCL_FOLDER");
  if (!folder || !*folder)
    return "";
  return std::string(folder) + "/group-" + std::to_string(getpid()) + "-" + std::to_string(state().ids++);
}

std::shared_ptr<SharedRanks> SharedRanks::join(const std::string &path, int rank) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 || rank >= kMostShared || ftruncate(descriptor, sizeof(SharedFile)) != 0)
    return nullptr;
  void *mapped = mmap(nullptr, sizeof(SharedFile), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED)
    return nullptr;
  std::shared_ptr<SharedRanks> joined(new SharedRanks(static_cast<SharedFile *>(mapped), path));
  joined->file->hasCome[rank] = 1;
  return joined;
}

// Who comes when somebody has left finds nobody, as in a group that is incomplete.
SharedRanks::~SharedRanks() {
  munmap(file, sizeof(SharedFile));
  unlink(path.c_str());
}

bool SharedRanks::isComplete(int ranks) const {
  return std::count(file->hasCome, file->hasCome + kMostShared, 1) == ranks;
}

// True: written whole. Messages of a rank to another one follow each other.
bool SharedRanks::send(SharedWay &way, Message &message) {
  const size_t all = kLengthBytes + message.bytes;
  const Length length = message.bytes;
  while (message.moved < all) {
    const uint64_t at = way.written;
    const size_t room = kRingBytes - size_t(at - way.taken);
    const bool isHeader = message.moved < kLengthBytes;
    const char *from = isHeader ? reinterpret_cast<const char *>(&length) + message.moved
                                : static_cast<const char *>(message.from) + (message.moved - kLengthBytes);
    const size_t bytes = std::min(room, (isHeader ? kLengthBytes : all) - message.moved);
    if (bytes == 0)
      return false;
    forEachRun(at, bytes,
               [&](size_t place, size_t done, size_t run) { std::memcpy(way.ring + place, from + done, run); });
    message.moved += bytes;
    way.written = message.end = at + bytes;
  }
  return true;
}

bool SharedRanks::receive(SharedWay &way, Message &message, nccl::Code &error) {
  const size_t all = kLengthBytes + message.bytes;
  while (message.moved < all) {
    const uint64_t at = way.taken;
    const size_t there = size_t(way.written - at);
    const bool isHeader = message.moved < kLengthBytes;
    if (there == 0 || (isHeader && there < kLengthBytes))
      return false;
    Length length = 0;
    char *to =
        isHeader ? reinterpret_cast<char *>(&length) : static_cast<char *>(message.to) + (message.moved - kLengthBytes);
    const size_t bytes = isHeader ? kLengthBytes : std::min(there, all - message.moved);
    forEachRun(at, bytes,
               [&](size_t place, size_t done, size_t run) { std::memcpy(to + done, way.ring + place, run); });
    message.moved += bytes;
    if (isHeader && length != message.bytes) {
      error = nccl::kInternalError;
      return false;
    }
    way.taken = at + bytes;
  }
  return true;
}

bool SharedRanks::move(int rank, Operation &operation, nccl::Code &error) {
  bool isDone = true;
  std::set<int> busy; // with an earlier message
  for (Message &message : operation.sends) {
    SharedWay &way = file->ways[rank][message.peer];
    if (busy.count(message.peer) == 0 && !send(way, message))
      busy.insert(message.peer);
    isDone = isDone && message.moved == kLengthBytes + message.bytes && way.taken >= message.end;
  }
  busy.clear();
  for (Message &message : operation.receives) {
    if (busy.count(message.peer) == 0 && !receive(file->ways[message.peer][rank], message, error))
      busy.insert(message.peer);
    isDone = isDone && message.moved == kLengthBytes + message.bytes;
  }
  return isDone && error == nccl::kSuccess;
}

void spreadGather(int rank, int ranks, Operation &operation) {
  auto slot = [&](int of) { return static_cast<char *>(operation.all) + size_t(of) * operation.bytes; };
  if (slot(rank) != operation.own)
    std::memcpy(slot(rank), operation.own, operation.bytes);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != rank) {
      operation.sends.push_back({peer, operation.own, nullptr, operation.bytes});
      operation.receives.push_back({peer, nullptr, slot(peer), operation.bytes});
    }
}

} // namespace heddle::fakenccl
