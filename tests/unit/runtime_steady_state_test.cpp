//===- runtime_steady_state_test.cpp - what launching and finding do not do --===//
// Counts every allocation, every lock and every read of a file of this process, in the runtime, SQLite and the C++
// library: the functions below stand before those of the C library. The recording driver takes none, and the clock
// stands. Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "runtime/Include/heddle_stats.h"
#include "runtime_fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::fake;
using test::ForwardCall;
using test::Session;

namespace {

thread_local long allocations = 0, locks = 0, reads = 0;

template <class F> F *next(const char *symbol) { return reinterpret_cast<F *>(dlsym(RTLD_NEXT, symbol)); }

} // namespace

extern "C" {

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) { return ++allocations, __libc_realloc(memory, bytes); }

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static auto *real = next<int(pthread_mutex_t *)>("pthread_mutex_lock");
  return ++locks, real(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  static auto *real = next<int(pthread_mutex_t *)>("pthread_mutex_trylock");
  return ++locks, real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
  static auto *real = next<int(pthread_rwlock_t *)>("pthread_rwlock_rdlock");
  return ++locks, real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
  static auto *real = next<int(pthread_rwlock_t *)>("pthread_rwlock_wrlock");
  return ++locks, real(lock);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t place) {
  return ++reads, syscall(SYS_pread64, file, bytes, count, place);
}

} // extern "C"

namespace {

heddle_kernel_query queryOf(const std::string &pattern) {
  heddle_kernel_query query = test::causalQuery();
  query.pattern = pattern.c_str();
  return query;
}

// A store of so many patterns, each tuned for eight buckets, finished as one that is shipped.
class ManyKernels {
public:
  explicit ManyKernels(int patterns) {
    test::startFake();
    Store store = test::openStore(path(), test::writing());
    for (int pattern = 0; pattern < patterns; ++pattern) {
      digests.push_back(std::string(60, 'a') + std::to_string(1000 + pattern));
      for (int bucket = 0; bucket < 8; ++bucket) {
        KernelRecord record = test::forwardRecord(digests.back() + "/" + std::to_string(bucket));
        record.pattern = digests.back();
        const Winner winner = test::someWinner(record, {bucket, 3, 2, 9}, {"Fake GPU", "sm_90", 132, 140});
        test::require(store.publish(record, winner));
      }
    }
    test::require(store.finalise());
  }
  std::string path() const { return folder / "kernels.db"; }
  std::vector<std::string> digests;

private:
  test::ScratchFolder folder;
};

// Handles on such a store, closed at the end.
struct Opened {
  heddle_store *store = nullptr;
  heddle_device *device = nullptr;
  std::vector<heddle_kernel *> kernels;
  explicit Opened(const std::string &path) {
    REQUIRE(heddle_store_open(path.c_str(), 0, &store) == HEDDLE_OK);
    REQUIRE(heddle_device_open(0, &device) == HEDDLE_OK);
  }
  ~Opened() {
    for (heddle_kernel *kernel : kernels)
      heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
  }
  void find(const std::string &pattern) {
    const heddle_kernel_query query = queryOf(pattern);
    REQUIRE_MESSAGE(heddle_kernel_find(store, device, &query, &kernels.emplace_back()) == HEDDLE_OK,
                    heddle_last_message());
  }
};

struct Cost {
  long allocations, locks, reads;
  bool operator==(const Cost &other) const {
    return allocations == other.allocations && locks == other.locks && reads == other.reads;
  }
};

template <class F> Cost costOf(const F &work) {
  const Cost before{allocations, locks, reads};
  work();
  return {allocations - before.allocations, locks - before.locks, reads - before.reads};
}

} // namespace

TEST_CASE("finding a kernel again asks neither its store nor the driver, however many are open") {
  const ManyKernels many(100);
  std::vector<Cost> costs;
  for (const size_t open : {size_t(1), many.digests.size()}) {
    Opened opened(many.path());
    for (size_t i = 0; i < open; ++i)
      opened.find(many.digests[i]);
    const heddle_kernel_query query = queryOf(many.digests[open / 2]);
    fakeCudaReset();
    costs.push_back(costOf([&] {
      for (int i = 0; i < 1000; ++i) {
        heddle_kernel *kernel = nullptr;
        REQUIRE(heddle_kernel_find(opened.store, opened.device, &query, &kernel) == HEDDLE_OK);
        heddle_kernel_close(kernel);
      }
    }));
    CHECK(fakeCudaCalls(nullptr) == 0);
  }
  CHECK(costs[0].reads == 0);
  CHECK(costs[0].locks <= 4 * 1000);
  CHECK(costs[0].allocations <= 12 * 1000);
  CHECK(costs[0] == costs[1]);
}

TEST_CASE("opening a store and finding a kernel reads as much of a large store as of a small one") {
  const ManyKernels few(5), many(100);
  auto readsOf = [](const ManyKernels &store) {
    return costOf([&] { Opened(store.path()).find(store.digests.back()); }).reads;
  };
  CHECK(std::filesystem::file_size(many.path()) > 10 * std::filesystem::file_size(few.path()));
  const long ofFew = readsOf(few), ofMany = readsOf(many);
  CHECK(ofFew > 0);
  CHECK(ofMany <= ofFew + 8); // a level more of a few trees
}

TEST_CASE("[4] a launch allocates nothing, takes no lock and asks the driver for little but the launch") {
  Session session;
  ForwardCall call;
  heddle_prepared *prepared = nullptr;
  const long locksBefore = locks, allocationsBefore = allocations;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  CHECK(allocations > allocationsBefore); // the counters count: preparing allocates,
  const heddle_kernel_query query = test::causalQuery();
  heddle_kernel *found = nullptr;
  REQUIRE(heddle_kernel_find(session.store, session.device, &query, &found) == HEDDLE_OK);
  CHECK(locks > locksBefore); // and finding locks
  heddle_kernel_close(found);
  for (bool isCurrent : {true, false}) {
    fakeCudaReset();
    fakeCudaSetCurrent(isCurrent ? 0 : -1);
    int failed = 0;
    const long allocated = allocations, locked = locks;
    for (int i = 0; i < 1000; ++i)
      failed += heddle_prepared_launch(prepared, nullptr) != HEDDLE_OK ||
                heddle_kernel_launch(session.kernel, nullptr, &call.args) != HEDDLE_OK;
    CHECK(allocations == allocated);
    CHECK(locks == locked);
    CHECK(failed == 0);
    CHECK(fakeCudaCalls("cuLaunchKernel") == 1000);
    CHECK(fakeCudaCalls("cuGraphLaunch") == 1000);       // of the prepared call,
    CHECK(fakeCudaCalls("cuStreamIsCapturing") == 1000); // which asks first
    CHECK(fakeCudaCalls("cuCtxGetCurrent") == 2000);
    CHECK(fakeCudaCalls("cuCtxPushCurrent_v2") == (isCurrent ? 0 : 2000));
    CHECK(fakeCudaCalls(nullptr) == (isCurrent ? 5000 : 9000)); // with the pops: no wait, no copy, no other question
  }
  heddle_prepared_close(prepared);
  fakeCudaSetCurrent(-1);
}

TEST_CASE("[4] [14] launches that are timed allocate nothing and take no lock once their events are there") {
  Session session;
  ForwardCall call;
  heddle_prepared *prepared = nullptr;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  REQUIRE(heddle_stats_sample(2) == HEDDLE_OK);
  auto launch = [&](int times) {
    int failed = 0;
    for (int i = 0; i < times; ++i)
      failed += heddle_prepared_launch(prepared, nullptr) != HEDDLE_OK ||
                heddle_kernel_launch(session.kernel, nullptr, &call.args) != HEDDLE_OK;
    CHECK(failed == 0);
  };
  void *held = fakeCudaHold(nullptr);
  launch(40); // as many are under way as there may be
  fakeCudaRelease(held);
  fakeCudaReset();
  const Cost cost = costOf([&] { launch(1000); });
  CHECK(cost == Cost{0, 0, 0});
  CHECK(fakeCudaCalls("cuEventRecord") == 2 * 1000);
  CHECK(fakeCudaCalls("cuEventCreate") == 0);
  heddle_stats_sample(0);
  heddle_prepared_close(prepared);
}
