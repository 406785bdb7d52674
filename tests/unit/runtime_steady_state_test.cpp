//===- runtime_steady_state_test.cpp - what a launch does not do ------------===//
// Counts every allocation and every lock of this process, in the runtime, SQLite and the C++ library: the functions
// below stand before those of the C library. The recording driver takes none. Numbers in brackets are the promises of
// runtime/Include/heddle.h.
#include "runtime_fixture.h"

#include <dlfcn.h>
#include <pthread.h>

using namespace heddle;
using namespace heddle::fake;
using test::ForwardCall;
using test::Session;

namespace {

thread_local long allocations = 0, locks = 0;

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

} // extern "C"

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
