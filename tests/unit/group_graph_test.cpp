// Calls over a group whose stream is captured: behind one like it, nothing is waited for, allocated or asked, every stream that
// takes part is joined, and calls outside of the graph go on. A group may end before its graphs, for which NCCL waits whatever
// it is told. Over the stand-ins of the driver and of NCCL, which refuse what they refuse.
#include "group_plans.h"
#include "nccl_fixture.h"

#include "runtime/Device/Kernel.h"
#include "runtime/Distributed/CudaShard.h"
#include "runtime/Distributed/GroupCall.h"

#include <array>

using namespace heddle;
using namespace heddle::test;

extern "C" {
int cuStreamBeginCapture_v2(cuda::Stream stream, int mode);
int cuStreamEndCapture(cuda::Stream stream, cuda::Graph *graph);
int cuGraphDestroy(cuda::Graph graph);
int cuGraphInstantiateWithFlags(cuda::GraphExec *executable, cuda::Graph graph, unsigned long long flags);
int cuGraphExecDestroy(cuda::GraphExec executable);
}

namespace {

constexpr int64_t kDim = 8;
constexpr const char *kForbidden[] = {"cuStreamSynchronize", "cuEventSynchronize", "cuEventQuery",
                                      "cuCtxSynchronize",    "cuMemAlloc_v2",      "cuMemFree_v2",
                                      "cuModuleLoadDataEx"};

// A GPU whose launches clear what they write.
class Launchless final : public ShardDevice {
public:
  explicit Launchless(CudaShard &shard) : shard(shard) {}
  void *stream(Queue queue) override { return shard.stream(queue); }
  bool isCaptured() const override { return shard.isCaptured(); }
  Status follow(Queue later, Queue earlier) override { return shard.follow(later, earlier); }
  Status letBegin(Queue begun) override { return shard.letBegin(begun); }
  Status clear(void *address, uint64_t bytes, Queue queue) override { return shard.clear(address, bytes, queue); }
  Status copy(const RowCopy &copy, Queue queue) override { return shard.copy(copy, queue); }
  Status add(const RowSum &sum, Queue queue) override { return shard.add(sum, queue); }
  Result<uint64_t> workspaceBytes(const KindText &, const heddle_attention_args &) override { return uint64_t(256); }
  Status launch(const KindText &, const heddle_attention_args &args, Queue queue) override {
    return shard.clear(args.workspace, args.workspace_bytes, queue);
  }

private:
  CudaShard &shard;
};

// One rank of a forward call, in memory of its GPU.
class Rank {
public:
  Rank(const GroupPlan &plan, const std::string &text, NcclTransport &transport)
      : plan(plan), digests(GroupDigests::of(plan, text)), transport(transport) {}

  Status prepare() {
    HEDDLE_ASSIGN(shard, CudaShard::create(transport.device()));
    HEDDLE_ASSIGN(DeviceStream made, DeviceStream::create(transport.device()));
    stream.emplace(std::move(made));
    shard->serve({}, stream->handle());
    const int64_t rows = plan.rowsOf(transport.rank());
    for (const auto &[tensor, heads] : {std::pair(&args.q, plan.heads), std::pair(&args.k, plan.kvHeads),
                                        std::pair(&args.v, plan.kvHeads), std::pair(&args.out, plan.heads)}) {
      HEDDLE_ASSIGN(char *memory, take(rows * heads * kDim * 2));
      *tensor = contiguousTensor(memory, DType::bf16, {1, rows, heads, kDim});
    }
    HEDDLE_ASSIGN(char *lse, take(rows * plan.heads * 4));
    args.lse = reinterpret_cast<float *>(lse);
    Launchless device(*shard);
    HEDDLE_ASSIGN(const uint64_t bytes, groupWorkspace(request(), transport.rank(), device));
    HEDDLE_ASSIGN(char *workspace, take(int64_t(bytes)));
    args.workspace = workspace, args.workspace_bytes = bytes;
    return {};
  }
  Status call() {
    Launchless device(*shard);
    return runGroupCall(request(), transport, device, agreed);
  }
  Status wait() { return transport.wait(stream->handle()); }
  Status captured() {
    if (cuStreamBeginCapture_v2(stream->handle(), 0) != 0)
      return Status::internal("no capture");
    const Status status = call();
    cuda::Graph graph = nullptr;
    const int code = cuStreamEndCapture(stream->handle(), &graph);
    HEDDLE_TRY(status);
    return code == 0 ? Status() : Status::internal("the capture ends with " + std::to_string(code));
  }
  void forget() { agreed.clear(); }

private:
  GroupRequest request() const { return {plan, digests, Kind(), CallElements(DType::bf16), args}; }
  Result<char *> take(int64_t bytes) {
    HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(transport.device(), std::max<int64_t>(bytes, 256)));
    memory.push_back(std::move(buffer));
    return static_cast<char *>(memory.back().data());
  }

  const GroupPlan &plan;
  const GroupDigests digests;
  NcclTransport &transport;
  std::unique_ptr<CudaShard> shard;
  std::optional<DeviceStream> stream;
  std::vector<DeviceBuffer> memory;
  heddle_attention_args args = {};
  Agreements agreed;
};

void checkAll(const std::vector<Status> &statuses) {
  for (const Status &status : statuses)
    CHECK_MESSAGE(status.isOk(), status.str());
}

std::array<int, std::size(kForbidden)> callsOfForbidden() {
  std::array<int, std::size(kForbidden)> calls = {};
  for (size_t i = 0; i < calls.size(); ++i)
    calls[i] = fake::fakeCudaCalls(kForbidden[i]);
  return calls;
}

} // namespace

TEST_CASE("a call over a group is captured behind one like it, and calls go on behind the capture") {
  for (const PlanCase &of : planCases()) {
    CAPTURE(std::string(of.file));
    startNccl();
    const std::string text = textOf(of);
    const GroupPlan plan = require(GroupPlan::parse(text));
    Transports joined = joinAll(plan.ranks());
    std::vector<Rank> ranks;
    for (const auto &transport : joined)
      ranks.emplace_back(plan, text, *transport);
    auto all = [&](auto work) {
      return onRanks(firstRanks(plan.ranks()), [&](int32_t rank) -> Status { return work(ranks[size_t(rank)]); });
    };
    checkAll(all([](Rank &rank) { return rank.prepare(); }));
    checkAll(all([](Rank &rank) -> Status {
      HEDDLE_TRY(rank.call());
      return rank.wait();
    }));
    const auto before = callsOfForbidden();
    checkAll(all([](Rank &rank) { return rank.captured(); }));
    const auto behind = callsOfForbidden();
    for (size_t i = 0; i < before.size(); ++i)
      CHECK_MESSAGE(before[i] == behind[i], kForbidden[i]);
    checkAll(all([](Rank &rank) -> Status {
      HEDDLE_TRY(rank.call());
      return rank.wait();
    }));
    for (const Status &status : all([](Rank &rank) {
           rank.forget();
           return rank.captured();
         })) {
      CHECK(status.code() == StatusCode::unsupported);
      CHECK_MESSAGE(status.message().find("make such a call once before") != std::string::npos, status.message());
    }
  }
}

namespace {

// Two ranks, and a graph of each with one message between them.
struct CapturedPair {
  Transports joined;
  std::vector<DeviceBuffer> memory;
  std::array<cuda::Graph, 2> graphs = {};

  CapturedPair() {
    startNccl();
    joined = joinAll(2);
    for (int32_t rank : {0, 1})
      memory.push_back(require(DeviceBuffer::allocate(joined[size_t(rank)]->device(), 256)));
    checkAll(onRanks({0, 1}, [&](int32_t rank) -> Status { return capture(rank); }));
  }
  Status capture(int32_t rank) {
    NcclTransport &transport = *joined[size_t(rank)];
    HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(transport.device()));
    void *bytes = memory[size_t(rank)].data();
    Exchange step;
    if (rank == 0)
      step.sends.push_back({1, bytes, 256});
    else
      step.receives.push_back({0, bytes, 256});
    cuStreamBeginCapture_v2(stream.handle(), 0);
    Status status = transport.exchange(step, stream.handle());
    if (status.isOk())
      status = transport.exchange(step, stream.handle()); // in the same graph
    cuStreamEndCapture(stream.handle(), &graphs[size_t(rank)]);
    return status;
  }
  void endGroup() {
    checkAll(onRanks({0, 1}, [&](int32_t rank) {
      joined[size_t(rank)].reset();
      return Status();
    }));
  }
};

void meetOnce() { joinAll(2); }

} // namespace

TEST_CASE("promise 12: a group that is closed before its graphs ends behind the last of them") {
  CapturedPair pair;
  std::array<cuda::GraphExec, 2> executables = {};
  for (size_t rank : {0, 1}) {
    cuGraphInstantiateWithFlags(&executables[rank], pair.graphs[rank], 0);
    cuGraphDestroy(pair.graphs[rank]);
  }
  pair.endGroup();
  meetOnce();
  CHECK(fake::fakeNcclLive() == 2); // what the graphs launch is there
  CHECK(fake::fakeNcclCalls("ncclCommAbort") == 0);
  for (cuda::GraphExec executable : executables)
    cuGraphExecDestroy(executable);
  CHECK(fake::fakeNcclLive() == 2);
  meetOnce();
  CHECK(fake::fakeNcclLive() == 0);
  CHECK(fake::fakeNcclCalls("ncclCommAbort") == 0);
}

TEST_CASE("promise 12: a group that is closed behind its graphs ends at once") {
  CapturedPair pair;
  for (cuda::Graph graph : pair.graphs)
    cuGraphDestroy(graph);
  pair.endGroup();
  CHECK(fake::fakeNcclLive() == 0);
}

TEST_CASE("a rank leaves, and its group is closed, while graphs are there") {
  CapturedPair pair;
  for (const auto &transport : pair.joined)
    transport->abort("it was told to");
  pair.endGroup();
  CHECK(fake::fakeNcclLive() == 2);
  for (cuda::Graph graph : pair.graphs)
    cuGraphDestroy(graph);
  awaitLive(0);
}

TEST_CASE("a graph that cannot be told of is no call") {
  startNccl();
  Transports joined = joinAll(1);
  const DeviceStream stream = require(DeviceStream::create(joined[0]->device()));
  fake::fakeCudaFail("cuUserObjectCreate", 2, 0);
  cuStreamBeginCapture_v2(stream.handle(), 0);
  GraphHolds holds;
  const Status status = holds.add(joined[0]->device(), stream.handle());
  CHECK(status.message().find("capture a call over a group: cuUserObjectCreate failed") != std::string::npos);
  CHECK(!holds.isHeld());
  fake::fakeCudaFail("cuUserObjectCreate", 0, 0);
  CHECK(holds.add(joined[0]->device(), stream.handle()).isOk());
  CHECK(holds.isHeld());
  cuda::Graph graph = nullptr;
  cuStreamEndCapture(stream.handle(), &graph);
  cuGraphDestroy(graph);
  CHECK(!holds.isHeld());
}
