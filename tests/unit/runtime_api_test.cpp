//===- runtime_api_test.cpp - the C interface, through the shared library ---===//
// Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "counted_allocations.h"
#include "runtime_fixture.h"

#include <thread>

using namespace heddle;
using namespace heddle::fake;
using test::allocationsLeft;
using test::causalQuery;
using test::ForwardCall;
using test::lastMessageHas;
using test::ScratchFolder;
using test::Session;

TEST_CASE("find, describe, launch and close") {
  int before = fakeCudaLiveModules();
  {
    Session session;
    heddle_kernel_info info = {};
    info.struct_size = sizeof(info);
    REQUIRE(heddle_kernel_get_info(session.kernel, &info) == HEDDLE_OK);
    CHECK(info.match == HEDDLE_MATCH_NEAREST_BUCKET);
    CHECK(std::string(info.content_key) == "kernel-1");
    CHECK(std::string(info.config) == "block_m=128");
    CHECK(info.param_count == 2);
    CHECK(info.median_us == 7.5);
    ForwardCall call;
    uint64_t bytes = 1;
    CHECK(heddle_kernel_workspace(session.kernel, &call.args, &bytes) == HEDDLE_OK);
    CHECK(bytes == 0);
    CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK);
    heddle_prepared *prepared = nullptr;
    REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
    CHECK(heddle_prepared_launch(prepared, nullptr) == HEDDLE_OK);
    heddle_prepared_close(prepared);
    CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
    CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
  }
  CHECK(fakeCudaLiveModules() == before);
}

TEST_CASE("a digest works as well as a name, and a full bucket is an exact match") {
  Session session;
  std::string digest(64, 'a');
  heddle_kernel_query query = causalQuery();
  query.pattern = digest.c_str();
  query.tiles_per_row = 8;
  heddle_kernel *kernel = nullptr;
  REQUIRE(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_OK);
  heddle_kernel_info info = {};
  info.struct_size = sizeof(info);
  REQUIRE(heddle_kernel_get_info(kernel, &info) == HEDDLE_OK);
  CHECK(info.match == HEDDLE_MATCH_EXACT);
  heddle_kernel_close(kernel);
}

TEST_CASE("a shipped store answers under the user's own, where it fits better") {
  Session session;
  ScratchFolder folder;
  std::string shipped = folder / "shipped.db", full(64, 'c');
  {
    Store store = test::openStore(shipped, test::writing());
    KernelRecord record = test::forwardRecord(), other = test::forwardRecord();
    record.contentKey = "shipped-exact";
    other.contentKey = "shipped-full";
    other.pattern = full;
    for (const KernelRecord &kernel : {record, other}) {
      Winner winner;
      static_cast<WinnerKey &>(winner) = WinnerKey(kernel, {0, 4, 2, 9}, {"Fake GPU", "sm_90", 132, 140});
      winner.contentKey = kernel.contentKey;
      winner.isTuned = 1;
      test::require(store.publish(kernel, winner));
    }
    test::require(store.setName({"full", full, "", 0}));
    test::require(store.setName({"causal", full, "", 0}));
    test::require(store.finalise());
  }
  auto found = [&](const char *pattern, int64_t tiles) -> std::string {
    heddle_kernel_query query = causalQuery();
    query.pattern = pattern;
    query.tiles_per_row = tiles;
    heddle_kernel *kernel = nullptr;
    if (heddle_kernel_find(session.store, session.device, &query, &kernel) != HEDDLE_OK)
      return heddle_last_message();
    heddle_kernel_info info = {};
    info.struct_size = sizeof(info);
    REQUIRE(heddle_kernel_get_info(kernel, &info) == HEDDLE_OK);
    std::string key = info.content_key;
    heddle_kernel_close(kernel);
    return key;
  };
  CHECK(found("full", 16).find("it names causal") != std::string::npos);
  CHECK(found("causal", 16) == "kernel-1");
  CHECK(heddle_store_add(session.store, (folder / "none.db").c_str(), HEDDLE_OPEN_IMMUTABLE) == HEDDLE_NOT_FOUND);
  CHECK(heddle_store_add(session.store, shipped.c_str(), 64) == HEDDLE_UNSUPPORTED);
  CHECK(heddle_store_add(session.store, nullptr, 0) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("add store: path: expected an address, got null"));
  CHECK(heddle_store_add(nullptr, shipped.c_str(), 0) == HEDDLE_INVALID_ARGUMENT);
  CHECK(found("causal", 16) == "kernel-1");
  REQUIRE(heddle_store_add(session.store, shipped.c_str(), HEDDLE_OPEN_IMMUTABLE) == HEDDLE_OK);
  // the user's own names the pattern, the shipped file has the better match
  CHECK(found("causal", 16) == "shipped-exact");
  CHECK(found("causal", 8) == "kernel-1"); // an exact match of the user's own
  CHECK(found("full", 16) == "shipped-full");
  heddle_kernel_query query = causalQuery();
  query.head_dim = 96;
  heddle_kernel *kernel = nullptr;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(lastMessageHas("kernels.db' and '"));
}

TEST_CASE("[2] failures leave a code and a message for their own thread") {
  Session session;
  heddle_kernel_query query = causalQuery();
  heddle_kernel *kernel = nullptr;
  query.pattern = "full";
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(lastMessageHas("it names causal"));
  std::thread([] { CHECK(std::string(heddle_last_message()).empty()); }).join();
  query = causalQuery();
  query.head_dim = 96;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(lastMessageHas("head_dim=96"));
  query.dtype = 9;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_INVALID_ARGUMENT);
  query = causalQuery();
  query.struct_size = 4;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("struct_size"));
  CHECK(kernel == nullptr);
  CHECK(heddle_device_open(9, &session.device) == HEDDLE_NOT_FOUND);
  heddle_store *store = nullptr;
  CHECK(heddle_store_open("/nowhere/kernels.db", 0, &store) == HEDDLE_NOT_FOUND);
  CHECK(heddle_store_open("/nowhere/kernels.db", 64, &store) == HEDDLE_UNSUPPORTED);
  CHECK(store == nullptr);
  CHECK(std::string(heddle_status_name(HEDDLE_NOT_FOUND)) == "notFound");
}

TEST_CASE("[2] null arguments are refused by name") {
  Session session;
  ForwardCall call;
  heddle_kernel_query query = causalQuery();
  CHECK(heddle_store_open(nullptr, 0, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("open store: path: expected an address, got null"));
  CHECK(heddle_device_open(0, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_find(session.store, session.device, &query, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_launch(nullptr, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_launch(session.kernel, nullptr, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_workspace(session.kernel, &call.args, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_prepare(session.kernel, &call.args, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_prepared_launch(nullptr, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_get_info(session.kernel, nullptr) == HEDDLE_INVALID_ARGUMENT);
  heddle_kernel_close(nullptr);
  heddle_prepared_close(nullptr);
}

TEST_CASE("[3] [5] refused arguments launch nothing") {
  Session session;
  ForwardCall call;
  int32_t lengths = 0;
  call.args.cu_seqlens_q = &lengths;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_UNSUPPORTED);
  CHECK(lastMessageHas("cu_seqlens_q"));
  call.args.cu_seqlens_q = nullptr;
  call.args.k.stride[1] += 1;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("k: stride of row: expected a multiple of 16 bytes, got 514 bytes (257 elements)"));
  heddle_prepared *prepared = nullptr;
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_INVALID_ARGUMENT);
  CHECK(prepared == nullptr);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
}

TEST_CASE("[1] without a driver the library works up to the device") {
  Session session;
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", "/nowhere/libcuda.so.1", 1);
  heddle_device *device = nullptr;
  CHECK(heddle_device_open(-1, &device) == HEDDLE_UNAVAILABLE);
  CHECK(lastMessageHas("/nowhere/libcuda.so.1"));
  CHECK(std::string(heddle_version()).find('.') != std::string::npos);
}

TEST_CASE("kernels outlive the store and the device handle") {
  Session session;
  heddle_store_close(session.store);
  heddle_device_close(session.device);
  session.store = nullptr;
  session.device = nullptr;
  ForwardCall call;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK);
}

// Every allocation of the whole way fails once, from the first to the last.
TEST_CASE("[1] no function throws when memory runs out, and nothing is left half-open") {
  Session session;
  std::string path = session.folder / "kernels.db";
  heddle_kernel_query query = causalQuery();
  heddle_kernel_close(session.kernel);
  session.kernel = nullptr;
  int modules = fakeCudaLiveModules(), contexts = fakeCudaRetainedContexts(), failures = 0;
  bool isWhole = false;
  for (long skip = 0; !isWhole && skip < 10000; ++skip) {
    heddle_store *store = nullptr;
    heddle_device *device = nullptr;
    heddle_kernel *kernel = nullptr;
    heddle_prepared *prepared = nullptr;
    ForwardCall call;
    allocationsLeft = skip;
    heddle_status status = heddle_store_open(path.c_str(), 0, &store);
    if (status == HEDDLE_OK)
      status = heddle_device_open(1, &device);
    if (status == HEDDLE_OK)
      status = heddle_kernel_find(store, device, &query, &kernel);
    if (status == HEDDLE_OK)
      status = heddle_prepare(kernel, &call.args, &prepared);
    isWhole = allocationsLeft >= 0;
    allocationsLeft = -1;
    failures += status == HEDDLE_INTERNAL;
    if (status != (isWhole ? HEDDLE_OK : HEDDLE_INTERNAL))
      FAIL("allocation " << skip << " gave status " << int(status));
    heddle_prepared_close(prepared);
    heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
    if (fakeCudaLiveModules() != modules || fakeCudaRetainedContexts() != contexts)
      FAIL("allocation " << skip << " left something open");
  }
  CHECK(isWhole);
  CHECK(failures > 20);
}
