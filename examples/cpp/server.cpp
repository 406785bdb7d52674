// server FILE PATTERN [THREADS STREAMS REQUESTS [SIZE...]]: requests of many lengths through one kernel, as a server
// has them. First one after the other, then by a pool of threads on a few streams; results must be the same bits. Every
// worker has memory of its own and prepares the call for a length once. SIZEs are the run-time sizes of the pattern in
// their order.
#include "driver.h"

#include <heddle/heddle.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <thread>

namespace api = heddle::api;

namespace {

constexpr int64_t kHeads = 4, kHeadDim = 64, kRow = kHeads * kHeadDim; // elements
constexpr int64_t kLongest = 512, kLengths = 40, kPool = 4096;         // rows

driver cuda;

api::Status said(const char *what, driver_code code) {
  return code == 0 ? api::Status()
                   : api::Status(HEDDLE_INTERNAL, std::string(what) + ": the driver says " + std::to_string(code));
}

// Device memory of one owner.
class Memory {
public:
  Memory() = default;
  Memory(Memory &&other) noexcept : address(std::exchange(other.address, 0)) {}
  Memory &operator=(Memory &&other) noexcept { return std::swap(address, other.address), *this; }
  ~Memory() {
    if (address)
      cuda.release(address);
  }
  static api::Result<Memory> allocate(uint64_t bytes) {
    Memory memory;
    if (const driver_code code = bytes > 0 ? cuda.allocate(&memory.address, bytes) : 0)
      return said("allocate", code);
    return memory;
  }
  void *data() const { return reinterpret_cast<void *>(static_cast<uintptr_t>(address)); }
  driver_pointer get() const { return address; }

private:
  driver_pointer address = 0;
};

// Rows first to first + length of the pool are q, the rows behind them k and v.
struct Request {
  int64_t first, length;
};

struct Job {
  const api::Kernel &kernel;
  std::vector<int64_t> sizes; // of the pattern
  std::vector<uint16_t> pool; // random rows on the host
  std::vector<Request> requests;
};

using Rows = std::vector<uint16_t>;

// Buffers for one request at a time, and the calls that were prepared for them.
class Worker {
public:
  static api::Result<Worker> create(const Job &job, void *stream) {
    Worker worker(job, stream);
    for (Memory &tensor : worker.tensors) {
      api::Result<Memory> memory = Memory::allocate(kLongest * kRow * sizeof(uint16_t));
      if (!memory)
        return memory.status();
      tensor = std::move(*memory);
    }
    api::Result<Memory> lse = Memory::allocate(kLongest * kHeads * sizeof(float));
    if (!lse)
      return lse.status();
    worker.lse = std::move(*lse);
    return worker;
  }

  api::Status serve(const Request &request, Rows &result) {
    const size_t bytes = request.length * kRow * sizeof(uint16_t);
    for (int tensor = 0; tensor < 3; ++tensor)
      if (driver_code code =
              cuda.to_device(tensors[tensor].get(), job->pool.data() + (request.first + tensor) * kRow, bytes, stream))
        return said("copy", code);
    api::Result<const api::Prepared *> call = preparedFor(request.length);
    if (!call)
      return call.status();
    if (api::Status status = (*call)->launch(stream); !status)
      return status;
    result.resize(request.length * kRow);
    if (driver_code code = cuda.to_host(result.data(), tensors[3].get(), bytes, stream))
      return said("copy", code);
    return said("wait", cuda.synchronize(stream));
  }

  size_t preparedCalls() const { return prepared.size(); }

private:
  Worker(const Job &job, void *stream) : job(&job), stream(stream) {}

  api::Arguments argumentsFor(int64_t length) const {
    api::Arguments arguments;
    heddle_tensor *const fields[] = {&arguments.q, &arguments.k, &arguments.v, &arguments.out};
    for (int tensor = 0; tensor < 4; ++tensor)
      *fields[tensor] = api::contiguous(tensors[tensor].data(), HEDDLE_BF16, {1, length, kHeads, kHeadDim});
    arguments.lse = static_cast<float *>(lse.data());
    for (size_t id = 0; id < job->sizes.size(); ++id)
      arguments.size(int32_t(id), job->sizes[id]);
    return arguments;
  }

  api::Result<const api::Prepared *> preparedFor(int64_t length) {
    if (auto known = prepared.find(length); known != prepared.end())
      return &known->second.call;
    api::Arguments arguments = argumentsFor(length);
    api::Result<uint64_t> bytes = job->kernel.workspaceBytes(arguments);
    if (!bytes)
      return bytes.status();
    api::Result<Memory> workspace = Memory::allocate(*bytes);
    if (!workspace)
      return workspace.status();
    arguments.workspace = workspace->data();
    arguments.workspace_bytes = *bytes;
    api::Result<api::Prepared> call = job->kernel.prepare(arguments);
    if (!call)
      return call.status();
    return &prepared.emplace(length, Call{std::move(*workspace), std::move(*call)}).first->second.call;
  }

  struct Call {
    Memory workspace;
    api::Prepared call;
  };
  const Job *job;
  void *stream;
  Memory tensors[4], lse; // q, k, v, out
  std::map<int64_t, Call> prepared;
};

api::Status serveInTurn(const Job &job, std::vector<Rows> &results) {
  api::Result<Worker> worker = Worker::create(job, nullptr);
  if (!worker)
    return worker.status();
  for (size_t i = 0; i < job.requests.size(); ++i)
    if (api::Status status = worker->serve(job.requests[i], results[i]); !status)
      return status;
  return {};
}

// What the threads of the pool share.
struct Pool {
  std::atomic<size_t> next{0}, wrong{0}, prepared{0};
};

api::Status work(const Job &job, const std::vector<Rows> &expected, void *context, void *stream, Pool &pool) {
  // for allocations and copies; launches find their context themselves
  if (const driver_code code = cuda.push_context(context))
    return said("context", code);
  api::Result<Worker> worker = Worker::create(job, stream);
  if (!worker)
    return worker.status();
  Rows result;
  for (size_t i; (i = pool.next++) < job.requests.size();) {
    if (api::Status status = worker->serve(job.requests[i], result); !status)
      return status;
    pool.wrong += result != expected[i];
  }
  pool.prepared += worker->preparedCalls();
  return {};
}

api::Status serveTogether(const Job &job, const std::vector<Rows> &expected, void *context, int threads, int streams,
                          Pool &pool) {
  std::vector<void *> made(streams, nullptr);
  for (void *&stream : made)
    if (const driver_code code = cuda.create_stream(&stream, 1 /* does not wait for the default stream */))
      return said("stream", code);
  std::vector<api::Status> outcomes(threads);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&, i] { outcomes[i] = work(job, expected, context, made[i % streams], pool); });
  for (std::thread &worker : workers)
    worker.join();
  for (void *stream : made)
    cuda.destroy_stream(stream);
  for (const api::Status &outcome : outcomes)
    if (!outcome)
      return outcome;
  return {};
}

Job makeJob(const api::Kernel &kernel, int64_t requests, std::vector<int64_t> sizes) {
  std::mt19937 random(1);
  Job job{kernel, std::move(sizes), std::vector<uint16_t>(kPool * kRow), {}};
  for (uint16_t &element : job.pool) // bf16 of either sign, magnitudes 0.5 to 2
    element = uint16_t((random() & 1) << 15 | 0x3f00 | (random() & 0xff));
  std::vector<int64_t> lengths(kLengths);
  for (int64_t &length : lengths)
    length = 1 + random() % kLongest;
  for (int64_t i = 0; i < requests; ++i)
    job.requests.push_back({int64_t(random() % (kPool - kLongest - 2)), lengths[random() % kLengths]});
  return job;
}

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

api::Status run(const char *file, const char *pattern, int threads, int streams, int64_t requests,
                std::vector<int64_t> sizes) {
  api::Result<api::Store> store = api::Store::open(file, HEDDLE_OPEN_IMMUTABLE);
  if (!store)
    return store.status();
  api::Result<api::Device> device = api::Device::open(0);
  if (!device)
    return device.status();
  void *context = nullptr;
  if (!driver_open(&cuda) || cuda.primary_context(&context, 0) != 0 || cuda.push_context(context) != 0)
    return {HEDDLE_UNAVAILABLE, "no context on GPU 0"};
  api::Query query(pattern);
  query.dtype = HEDDLE_BF16;
  query.head_dim = query.value_dim = kHeadDim;
  query.batch = 1, query.heads = query.kv_heads = kHeads, query.seqlen_q = kLongest / 2;
  api::Result<api::Kernel> kernel = api::Kernel::find(*store, *device, query);
  if (!kernel)
    return kernel.status();
  const Job job = makeJob(*kernel, requests, std::move(sizes));
  std::vector<Rows> expected(job.requests.size());
  auto begin = std::chrono::steady_clock::now();
  if (api::Status status = serveInTurn(job, expected); !status)
    return status;
  const double inTurn = secondsSince(begin);
  Pool pool;
  begin = std::chrono::steady_clock::now();
  if (api::Status status = serveTogether(job, expected, context, threads, streams, pool); !status)
    return status;
  std::printf(
      "%lld requests of %lld lengths, %d threads on %d streams: %.0f requests a second (%.0f one after the other), "
      "%zu prepared calls, %zu results differ\n",
      static_cast<long long>(requests), static_cast<long long>(kLengths), threads, streams,
      double(requests) / secondsSince(begin), double(requests) / inTurn, pool.prepared.load(), pool.wrong.load());
  return pool.wrong == 0 ? api::Status()
                         : api::Status(HEDDLE_INTERNAL, "results of the pool differ from those of one thread");
}

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const int64_t threads = number(3, 8), streams = number(4, 4), requests = number(5, 1000);
  if (argc < 3 || threads < 1 || threads > 1024 || streams < 1 || streams > 1024 || requests < 1) {
    std::fprintf(stderr, "usage: server FILE PATTERN [THREADS STREAMS REQUESTS [SIZE...]]\n");
    return 2;
  }
  std::vector<int64_t> sizes;
  for (int i = 6; i < argc; ++i)
    sizes.push_back(std::atoll(argv[i]));
  const api::Status status = run(argv[1], argv[2], int(threads), int(streams), requests, std::move(sizes));
  if (!status)
    std::fprintf(stderr, "server: %s: %s\n", heddle_status_name(status.code()), status.message().c_str());
  return status ? 0 : 1;
}
