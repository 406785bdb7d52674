#include "runtime/Distributed/LocalTransport.h"

#include "runtime/Distributed/RankWords.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

// One message that its sender waits with.
struct Offer {
  const void *data;
  uint64_t bytes;
  bool isTaken = false;
};

// What the ranks share.
class Meeting {
public:
  Meeting(int32_t ranks, std::chrono::milliseconds limit)
      : limit(limit), texts(size_t(ranks)), cameTo(size_t(ranks), 0), isClosed(size_t(ranks), false),
        waitsFor(size_t(ranks)) {}

  Result<std::vector<std::string>> gather(int32_t rank, const std::string &mine) {
    std::unique_lock<std::mutex> lock(mutex);
    HEDDLE_TRY(checkWhole());
    const int64_t round = ++cameTo[size_t(rank)];
    texts[size_t(rank)][round] = mine;
    changed.notify_all();
    HEDDLE_TRY(waitFor(lock, rank, [&] { return missingFrom(round); }));
    std::vector<std::string> all;
    for (std::map<int64_t, std::string> &ofRank : texts) {
      all.push_back(ofRank[round]);
      ofRank.erase(ofRank.begin(), ofRank.lower_bound(round - 1)); // nobody is two rounds behind
    }
    return all;
  }

  Status exchange(int32_t rank, const Exchange &step) {
    std::unique_lock<std::mutex> lock(mutex);
    HEDDLE_TRY(checkWhole());
    std::vector<std::pair<int32_t, std::shared_ptr<Offer>>> offered;
    for (const SentBytes &sent : step.sends) {
      offered.push_back({sent.peer, std::make_shared<Offer>(Offer{sent.data, sent.bytes})});
      offers[{rank, sent.peer}].push_back(offered.back().second);
    }
    changed.notify_all();
    for (const ReceivedBytes &received : step.receives)
      HEDDLE_TRY(take(lock, rank, received));
    return waitFor(lock, rank, [&] {
      std::vector<int32_t> slow;
      for (const auto &[peer, offer] : offered)
        if (!offer->isTaken)
          slow.push_back(peer);
      return slow;
    });
  }

  void leave(int32_t rank, const std::string &why) {
    std::lock_guard<std::mutex> lock(mutex);
    if (left.empty())
      left = "rank " + num(rank) + " left: " + why;
    changed.notify_all();
  }

  // It does nothing more, which only those see who wait for it.
  void close(int32_t rank) {
    std::lock_guard<std::mutex> lock(mutex);
    isClosed[size_t(rank)] = true;
    changed.notify_all();
  }

private:
  Status checkWhole() const { return left.empty() ? Status() : Status::unavailable(left); }

  std::vector<int32_t> missingFrom(int64_t round) const {
    std::vector<int32_t> missing;
    for (size_t rank = 0; rank < cameTo.size(); ++rank)
      if (cameTo[rank] < round)
        missing.push_back(int32_t(rank));
    return missing;
  }

  Status take(std::unique_lock<std::mutex> &lock, int32_t rank, const ReceivedBytes &received) {
    auto &queue = offers[{received.peer, rank}];
    HEDDLE_TRY(waitFor(lock, rank,
                       [&] { return queue.empty() ? std::vector<int32_t>{received.peer} : std::vector<int32_t>(); }));
    HEDDLE_TRY(checkWhole()); // who failed waits no more, and its memory is its own
    const std::shared_ptr<Offer> offer = queue.front();
    if (offer->bytes != received.bytes) {
      left = "rank " + num(rank) + " expected " + num(int64_t(received.bytes)) + " bytes of rank " +
             num(received.peer) + ", got " + num(int64_t(offer->bytes));
      changed.notify_all();
      return Status::invalidArgument(left);
    }
    queue.pop_front();
    if (received.bytes)
      std::memcpy(received.data, offer->data, received.bytes);
    offer->isTaken = true;
    changed.notify_all();
    return {};
  }

  // Those for whom `ranks` wait in turn, as far as they do.
  std::vector<int32_t> lostAmong(const std::vector<int32_t> &ranks) const {
    std::vector<int32_t> lost, reached;
    auto reach = [&](const std::vector<int32_t> &more) {
      for (int32_t rank : more)
        if (std::find(reached.begin(), reached.end(), rank) == reached.end())
          reached.push_back(rank);
    };
    reach(ranks);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (waitsFor[size_t(reached[i])].empty())
        lost.push_back(reached[i]);
      reach(waitsFor[size_t(reached[i])]);
    }
    return lost.empty() ? ranks : lost; // they wait for each other
  }

  // Until nobody is waited for, somebody left, or the limit is over.
  template <class WaitedFor> Status waitFor(std::unique_lock<std::mutex> &lock, int32_t rank, WaitedFor &&waitedFor) {
    const auto end = std::chrono::steady_clock::now() + limit;
    std::vector<int32_t> &ranks = waitsFor[size_t(rank)];
    while (true) {
      ranks = waitedFor();
      if (ranks.empty())
        return {};
      for (int32_t peer : ranks)
        if (left.empty() && isClosed[size_t(peer)])
          left = "rank " + num(peer) + " left: its transport was closed";
      HEDDLE_TRY(checkWhole());
      if (changed.wait_until(lock, end) == std::cv_status::timeout && !waitedFor().empty() && left.empty()) {
        left = "rank " + num(rank) + " waited " + limitText(limit) + " for " + ranksText(lostAmong(waitedFor()));
        changed.notify_all();
      }
    }
  }

  const std::chrono::milliseconds limit;
  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  std::vector<std::map<int64_t, std::string>> texts; // by rank, then by round
  std::vector<int64_t> cameTo;                       // round of each rank
  std::vector<bool> isClosed;                        // by rank
  std::vector<std::vector<int32_t>> waitsFor;        // of each rank
  std::map<std::pair<int32_t, int32_t>, std::deque<std::shared_ptr<Offer>>> offers;
  std::string left; // why the group is over
};

class LocalTransport : public Transport {
public:
  LocalTransport(std::shared_ptr<Meeting> meeting, int32_t rank, int32_t ranks)
      : meeting(std::move(meeting)), own(rank), all(ranks) {}
  ~LocalTransport() override { meeting->close(own); }

  int32_t rank() const override { return own; }
  int32_t ranks() const override { return all; }
  Result<std::vector<std::string>> gather(const std::string &mine) override { return meeting->gather(own, mine); }
  Status exchange(const Exchange &step, void *) override { return meeting->exchange(own, step); }
  Status wait(void *) override { return {}; }
  void abort(const std::string &why) override { meeting->leave(own, why); }

private:
  std::shared_ptr<Meeting> meeting;
  int32_t own, all;
};

} // namespace

std::vector<std::unique_ptr<Transport>> localTransports(int32_t ranks, std::chrono::milliseconds limit) {
  auto meeting = std::make_shared<Meeting>(ranks, limit);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int32_t rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_unique<LocalTransport>(meeting, rank, ranks));
  return transports;
}

} // namespace heddle
