// A rank that computes nothing and knows of each operation which others are over when it begins: what two queues may do to the
// same bytes at once is a race. Ranks that it meets agree with everything.
#ifndef HEDDLE_TESTS_UNIT_ORDERED_SHARD_H
#define HEDDLE_TESTS_UNIT_ORDERED_SHARD_H

#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/Transport.h"

#include <algorithm>
#include <array>
#include <set>

namespace heddle::test {

// Bytes of memory: intervals, ascending, none next to another.
class Bytes {
public:
  Bytes() = default;
  Bytes(const void *begin, int64_t bytes) { add(reinterpret_cast<uintptr_t>(begin), bytes), join(); }
  static Bytes of(const RowPlace &place, int64_t batches, int64_t rows, int64_t heads) {
    Bytes bytes;
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t head = 0; head < heads; ++head)
          bytes.add(reinterpret_cast<uintptr_t>(place.at(row, head).base + batch * place.batchStride), place.headBytes);
    bytes.join();
    return bytes;
  }
  static Bytes of(const heddle_tensor &tensor) {
    const int64_t element = dtypeBytes(*dtypeOfCode(tensor.dtype));
    return of(RowPlace::ofTensor(tensor, element), tensor.size[0], tensor.size[1], tensor.size[2]);
  }
  static Bytes floats(const float *begin, int64_t count) { return {begin, count * int64_t(sizeof(float))}; }

  bool meets(const Bytes &other) const {
    for (size_t a = 0, b = 0; a < parts.size() && b < other.parts.size();)
      if (parts[a].second <= other.parts[b].first)
        ++a;
      else if (other.parts[b].second <= parts[a].first)
        ++b;
      else
        return true;
    return false;
  }

private:
  void add(uintptr_t begin, int64_t bytes) {
    if (!parts.empty() && parts.back().second == begin)
      parts.back().second += uintptr_t(bytes);
    else if (bytes > 0)
      parts.emplace_back(begin, begin + uintptr_t(bytes));
  }
  void join() {
    std::sort(parts.begin(), parts.end());
    std::vector<std::pair<uintptr_t, uintptr_t>> joined;
    for (const auto &part : parts)
      if (!joined.empty() && part.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, part.second);
      else
        joined.push_back(part);
    parts = std::move(joined);
  }

  std::vector<std::pair<uintptr_t, uintptr_t>> parts;
};

class OrderedShard final : public ShardDevice {
public:
  std::set<std::string> races;
  int launchesAside = 0, launches = 0, messages = 0;
  static constexpr int kQueues = 3;
  // Everything in order: the number on its queue, and how many of each queue are over when it begins.
  struct Enqueued {
    std::string what;
    Queue queue;
    int number;
    std::array<int, kQueues> over;
  };
  std::vector<Enqueued> order;

  void *stream(Queue) override { return nullptr; }
  Status follow(Queue later, Queue earlier) override {
    if (follows++ == leftOut) // a rank that forgets to wait
      return {};
    for (int each = 0; each < kQueues; ++each)
      over[int(later)][each] = std::max(over[int(later)][each], over[int(earlier)][each]);
    return {};
  }
  Status clear(void *address, uint64_t bytes, Queue queue) override {
    return enqueue("clear", queue, {}, {{address, int64_t(bytes)}});
  }
  Status copy(const RowCopy &copy, Queue queue) override {
    return enqueue("copy", queue, {Bytes::of(copy.from, copy.batches, copy.rows, copy.heads)},
                   {Bytes::of(copy.to, copy.batches, copy.rows, copy.heads)});
  }
  Status add(const RowSum &sum, Queue queue) override {
    const RowCopy &rows = sum.rows;
    const Bytes to = Bytes::of(rows.to, rows.batches, rows.rows, rows.heads);
    std::vector<Bytes> reads = {to, Bytes::of(rows.from, rows.batches, rows.rows, rows.heads)}, writes = {to};
    const int64_t count = rows.batches * rows.rows * rows.heads;
    for (const float *lse : {sum.lse, sum.lseFrom})
      if (lse)
        reads.push_back(Bytes::floats(lse, count));
    if (sum.lseSum)
      writes.push_back(Bytes::floats(sum.lseSum, count));
    return enqueue("add", queue, reads, writes);
  }
  Result<uint64_t> workspaceBytes(const KindText &, const heddle_attention_args &) override { return uint64_t(4096); }
  Status launch(const KindText &kind, const heddle_attention_args &args, Queue queue) override {
    launchesAside += queue == Queue::aside;
    ++launches;
    std::vector<Bytes> reads, writes;
    addRoles(kind.kind.isBackward(), args, reads, writes);
    writes.emplace_back(args.workspace, int64_t(args.workspace_bytes));
    return enqueue("launch", queue, reads, writes);
  }
  Status exchange(const Exchange &step) {
    std::vector<Bytes> reads, writes;
    for (const SentBytes &each : step.sends)
      reads.emplace_back(each.data, int64_t(each.bytes));
    for (const ReceivedBytes &each : step.receives)
      writes.emplace_back(each.data, int64_t(each.bytes));
    messages += int(step.sends.size() + step.receives.size());
    return enqueue("message", Queue::link, reads, writes);
  }
  // Behind a call its caller writes what the call reads, and reads what it writes.
  void useAll(bool isBackward, const heddle_attention_args &args) {
    std::vector<Bytes> reads, writes;
    addRoles(isBackward, args, reads, writes);
    (void)enqueue("caller", Queue::compute, writes, reads);
  }

  // This one of all waits does not happen.
  void leaveOut(int number) { leftOut = number; }
  int waits() const { return follows; }

private:
  struct Use {
    std::string what;
    Bytes bytes;
    int queue, number;
    bool isWrite;
  };

  static void addRoles(bool isBackward, const heddle_attention_args &args, std::vector<Bytes> &reads,
                       std::vector<Bytes> &writes) {
    const int64_t rows = args.q.size[0] * args.q.size[1] * args.q.size[2];
    reads = {Bytes::of(args.q), Bytes::of(args.k), Bytes::of(args.v)};
    if (args.carry_out) {
      reads.push_back(Bytes::floats(args.carry_out, rows * args.v.size[3]));
      reads.push_back(Bytes::floats(args.carry_lse, rows));
    }
    std::vector<Bytes> &ofResults = isBackward ? reads : writes;
    ofResults.push_back(Bytes::of(args.out));
    if (args.lse)
      ofResults.push_back(Bytes::floats(args.lse, rows));
    if (!isBackward)
      return;
    reads.push_back(Bytes::of(args.d_out));
    for (const heddle_tensor *gradient : {&args.d_q, &args.d_k, &args.d_v}) { // they are added to
      reads.push_back(Bytes::of(*gradient));
      writes.push_back(Bytes::of(*gradient));
    }
  }

  Status enqueue(const char *what, Queue queue, const std::vector<Bytes> &reads, const std::vector<Bytes> &writes) {
    auto &before = over[int(queue)];
    auto check = [&](const Bytes &bytes, bool isWrite) {
      for (const Use &use : uses)
        if ((isWrite || use.isWrite) && before[use.queue] < use.number && bytes.meets(use.bytes))
          races.insert(std::string(what) + " on queue " + std::to_string(int(queue)) +
                       (isWrite ? " writes" : " reads") + " what a " + use.what + " on queue " +
                       std::to_string(use.queue) + (use.isWrite ? " writes" : " reads"));
    };
    for (const Bytes &bytes : reads)
      check(bytes, false);
    for (const Bytes &bytes : writes)
      check(bytes, true);
    order.push_back({what, queue, before[int(queue)] + 1, before});
    ++before[int(queue)];
    for (const Bytes &bytes : reads)
      uses.push_back({what, bytes, int(queue), before[int(queue)], false});
    for (const Bytes &bytes : writes)
      uses.push_back({what, bytes, int(queue), before[int(queue)], true});
    return {};
  }

  std::array<std::array<int, kQueues>, kQueues> over = {}; // by queue, of each queue
  std::vector<Use> uses;
  int follows = 0, leftOut = -1;
};

class Alone final : public Transport {
public:
  Alone(int32_t own, int32_t count, OrderedShard &shard) : own(own), count(count), shard(shard) {}
  int32_t rank() const override { return own; }
  int32_t ranks() const override { return count; }
  Result<std::vector<std::string>> gather(const std::string &mine) override {
    return std::vector<std::string>(size_t(count), mine);
  }
  Status exchange(const Exchange &step, void *) override { return shard.exchange(step); }
  Status wait(void *) override { return {}; }
  void abort(const std::string &) override {}

private:
  int32_t own, count;
  OrderedShard &shard;
};

} // namespace heddle::test

#endif
