// What a rank enqueues on queues that wait for each other only where they are told to: nothing reads what another queue may
// still be writing. On processors, and on drivers that record, queues are one.
#include "runtime/Device/Kernel.h"
#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/Transport.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

using namespace heddle;

namespace {

struct Span {
  const char *begin, *end;
  bool meets(const Span &other) const { return begin < other.end && other.begin < end; }
};

Span spanOf(const RowPlace &place, int64_t rows, int64_t heads) {
  return {place.base, place.base + (rows - 1) * place.rowStride + (heads - 1) * place.headStride + place.headBytes};
}

Span spanOf(const heddle_tensor &tensor, int64_t bytes) {
  const char *begin = static_cast<const char *>(tensor.ptr);
  return {begin, begin + bytes * ((tensor.size[1] - 1) * tensor.stride[1] + (tensor.size[2] - 1) * tensor.stride[2] +
                                  tensor.size[3])};
}

Span floats(const float *begin, int64_t count) {
  return {reinterpret_cast<const char *>(begin), reinterpret_cast<const char *>(begin + count)};
}

constexpr int kQueues = 3;

/// Computes nothing; knows of each operation which others are over when it begins.
class OrderedShard final : public ShardDevice {
public:
  std::vector<std::string> races;
  int launchesAside = 0;

  void *stream(Queue) override { return nullptr; }
  Status follow(Queue later, Queue earlier) override {
    for (int each = 0; each < kQueues; ++each)
      over[int(later)][each] = std::max(over[int(later)][each], over[int(earlier)][each]);
    return {};
  }
  Status clear(void *address, uint64_t bytes, Queue queue) override {
    const char *begin = static_cast<char *>(address);
    return enqueue("clear", queue, {}, {{begin, begin + bytes}});
  }
  Status copy(const RowCopy &copy, Queue queue) override {
    return enqueue("copy", queue, {spanOf(copy.from, copy.rows, copy.heads)}, {spanOf(copy.to, copy.rows, copy.heads)});
  }
  Status add(const RowSum &sum, Queue queue) override {
    const RowCopy &rows = sum.rows;
    const Span to = spanOf(rows.to, rows.rows, rows.heads);
    std::vector<Span> reads = {to, spanOf(rows.from, rows.rows, rows.heads)}, writes = {to};
    for (const float *lse : {sum.lse, sum.lseFrom})
      if (lse)
        reads.push_back(floats(lse, rows.rows * rows.heads));
    if (sum.lseSum)
      writes.push_back(floats(sum.lseSum, rows.rows * rows.heads));
    return enqueue("add", queue, reads, writes);
  }
  Result<uint64_t> workspaceBytes(const KindText &, const heddle_attention_args &) override { return uint64_t(4096); }
  Status launch(const KindText &, const heddle_attention_args &args, Queue queue) override {
    launchesAside += queue == Queue::aside;
    const int64_t rows = args.q.size[1], heads = args.q.size[2];
    std::vector<Span> reads = {spanOf(args.q, 2), spanOf(args.k, 2), spanOf(args.v, 2)};
    if (args.carry_out) {
      reads.push_back(floats(args.carry_out, rows * heads * args.v.size[3]));
      reads.push_back(floats(args.carry_lse, rows * heads));
    }
    return enqueue("launch", queue, reads,
                   {spanOf(args.out, args.out.dtype == HEDDLE_FP32 ? 4 : 2), floats(args.lse, rows * heads)});
  }
  Status exchange(const Exchange &step) {
    std::vector<Span> reads, writes;
    for (const SentBytes &each : step.sends)
      reads.push_back({static_cast<const char *>(each.data), static_cast<const char *>(each.data) + each.bytes});
    for (const ReceivedBytes &each : step.receives)
      writes.push_back({static_cast<char *>(each.data), static_cast<char *>(each.data) + each.bytes});
    return enqueue("message", Queue::link, reads, writes);
  }

private:
  struct Write {
    std::string what;
    Span span;
    int queue, number;
  };

  Status enqueue(const char *what, Queue queue, const std::vector<Span> &reads, const std::vector<Span> &writes) {
    auto &before = over[int(queue)];
    for (const Write &write : written)
      for (const Span &read : reads)
        if (read.meets(write.span) && before[write.queue] < write.number)
          races.push_back(std::string(what) + " on queue " + std::to_string(int(queue)) + " reads what a " +
                          write.what + " on queue " + std::to_string(write.queue) + " writes");
    ++before[int(queue)];
    for (const Span &write : writes)
      written.push_back({what, write, int(queue), before[int(queue)]});
    return {};
  }

  std::array<std::array<int, kQueues>, kQueues> over = {}; // by queue, of each queue
  std::vector<Write> written;
};

/// The other rank agrees with everything.
class Alone final : public Transport {
public:
  Alone(int32_t own, OrderedShard &shard) : own(own), shard(shard) {}
  int32_t rank() const override { return own; }
  int32_t ranks() const override { return 2; }
  Result<std::vector<std::string>> gather(const std::string &mine) override {
    return std::vector<std::string>{mine, mine};
  }
  Status exchange(const Exchange &step, void *) override { return shard.exchange(step); }
  Status wait(void *) override { return {}; }
  void abort(const std::string &) override {}

private:
  int32_t own;
  OrderedShard &shard;
};

/// longformer, 16k rows on two ranks: 64 global rows travel to the other rank's keys.
constexpr const char *kPlan = R"(heddle-group-plan 2
pattern 978eae4cea4f236aea598aba243a430ce9aafb0dbbd94c8c2a8ed1e58a16e167
sizes 16384 64 8 0
whole 2 3
rank 0:8192
rank 8192:16384
walk forward
blocks 0:64 64:7744 7744:8192
blocks 8192:16384
step
of 0
launch 0 aside 0 0:7936
launch 2 aside 0 0:8192
launch 1 own 0 0:8000
of 1
step
hop 1 0
part 0 8 8192:1:256
hop 0 1
part 0 8 0:1:64 7936:1:256
of 0
window 8192:8448
launch 2 window 0 8192:8448
of 1
window 0:16384
blank 64:1088
blank 6912:7936
launch 0 window 0 0:16384
step
of 0
launch 0 own 0 7936:8192
of 1
guests 0 0
meet 1 0 8192:16384
)";

} // namespace

TEST_CASE("queues of a rank wait for what they read, in call after call") {
  const Result<GroupPlan> plan = GroupPlan::parse(kPlan);
  REQUIRE_MESSAGE(plan, plan.status().message());
  for (int32_t rank : {0, 1}) {
    CAPTURE(rank);
    char *next = reinterpret_cast<char *>(uintptr_t(1) << 40);
    auto take = [&](int64_t heads) {
      const heddle_tensor tensor = contiguousTensor(next, DType::bf16, {1, 8192, heads, 128});
      next += int64_t(1) << 30;
      return tensor;
    };
    GroupRequest request{*plan, GroupDigests::of(*plan, kPlan), Kind(), CallElements(DType::bf16), {}};
    request.args.q = take(64), request.args.k = take(8), request.args.v = take(8), request.args.out = take(64);
    request.args.lse = reinterpret_cast<float *>(next);
    request.args.workspace = next + (int64_t(1) << 30);
    OrderedShard shard;
    const Result<uint64_t> bytes = groupWorkspace(request, rank, shard);
    REQUIRE_MESSAGE(bytes, bytes.status().message());
    request.args.workspace_bytes = *bytes;
    Alone transport(rank, shard);
    Agreements agreed;
    for (int call = 0; call < 2; ++call) {
      const Status status = runGroupCall(request, transport, shard, agreed);
      REQUIRE_MESSAGE(status.isOk(), status.message());
    }
    CHECK(shard.launchesAside > 0);
    for (const std::string &race : shard.races)
      CHECK_MESSAGE(false, race);
  }
}
