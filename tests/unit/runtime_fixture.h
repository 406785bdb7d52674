// A store of one kernel, and the handles of the C interface on it, for tests that go through libheddle_runtime.so.
#ifndef HEDDLE_TESTS_UNIT_RUNTIME_FIXTURE_H
#define HEDDLE_TESTS_UNIT_RUNTIME_FIXTURE_H

#include "device_fixture.h"
#include "runtime/Include/heddle.h"
#include "store_fixture.h"

namespace heddle::test {

// A store with one tuned kernel under the name "causal".
inline std::string makeNamedStore(const ScratchFolder &folder) {
  std::string path = folder / "kernels.db";
  Store store = openStore(path, writing());
  KernelRecord record = forwardRecord();
  record.config = "block_m=128";
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, {0, 3, 2, 9}, {"Fake GPU", "sm_90", 132, 140});
  winner.contentKey = record.contentKey;
  winner.isTuned = 1;
  winner.medianUs = 7.5;
  require(store.publish(record, winner));
  require(store.setName({"causal", record.pattern, "left right", 0}));
  require(store.finalise());
  return path;
}

inline heddle_kernel_query causalQuery() {
  heddle_kernel_query query = {};
  query.struct_size = sizeof(query);
  query.dtype = HEDDLE_BF16;
  query.pattern = "causal";
  query.head_dim = 64;
  query.value_dim = 128;
  query.batch = 2, query.heads = 8, query.kv_heads = 4, query.seqlen_q = 1000;
  return query;
}

// Opened handles, closed at the end.
struct Session {
  ScratchFolder folder;
  heddle_store *store = nullptr;
  heddle_device *device = nullptr;
  heddle_kernel *kernel = nullptr;

  Session() {
    startFake();
    REQUIRE(heddle_store_open(makeNamedStore(folder).c_str(), 0, &store) == HEDDLE_OK);
    REQUIRE(heddle_device_open(0, &device) == HEDDLE_OK);
    heddle_kernel_query query = causalQuery();
    REQUIRE_MESSAGE(heddle_kernel_find(store, device, &query, &kernel) == HEDDLE_OK, heddle_last_message());
  }
  ~Session() {
    heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
  }
};

inline bool lastMessageHas(const char *text) {
  return std::string(heddle_last_message()).find(text) != std::string::npos;
}

} // namespace heddle::test

#endif
