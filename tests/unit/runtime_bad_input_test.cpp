//===- runtime_bad_input_test.cpp - what the C interface refuses ------------===//
// Every refusal is a status with a text, and nothing was launched. Numbers in brackets are the promises of
// runtime/Include/heddle.h.
#include "runtime_fixture.h"

#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>

using namespace heddle;
using namespace heddle::fake;
using test::causalQuery;
using test::ForwardCall;
using test::lastMessageHas;
using test::ScratchFolder;
using test::Session;

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

struct Case {
  const char *message;
  heddle_status status;
  std::function<void(heddle_attention_args &)> change;
};

// Through every function that takes arguments.
void checkRefused(const Session &session, const Case &refused) {
  ForwardCall call;
  refused.change(call.args);
  uint64_t bytes = 77;
  heddle_prepared *prepared = nullptr;
  INFO(refused.message);
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == refused.status);
  CHECK_MESSAGE(lastMessageHas(refused.message), std::string(heddle_last_message()));
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == refused.status);
  CHECK_MESSAGE(lastMessageHas(refused.message), std::string(heddle_last_message()));
  CHECK(prepared == nullptr);
  CHECK(heddle_kernel_workspace(session.kernel, &call.args, &bytes) == refused.status);
  CHECK(bytes == 77);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
}

heddle_kernel_info infoOf(const heddle_kernel *kernel) {
  heddle_kernel_info info = {};
  info.struct_size = sizeof info;
  REQUIRE(heddle_kernel_get_info(kernel, &info) == HEDDLE_OK);
  return info;
}

} // namespace

TEST_CASE("[2] [3] [5] arguments that no kernel takes") {
  Session session;
  constexpr heddle_status kInvalid = HEDDLE_INVALID_ARGUMENT, kUnsupported = HEDDLE_UNSUPPORTED;
  const Case cases[] = {
      {"v: size of row: expected 3000, got 2000", kInvalid, [](auto &a) { a.v.size[1] = 2000; }},
      {"q: size of dim: expected 64, got 128", kInvalid, [](auto &a) { a.q.size[3] = 128; }},
      {"k: size of batch: expected 0 to 2^31 - 1, got -1", kInvalid, [](auto &a) { a.k.size[0] = -1; }},
      {"expected a divisor of the 8 query heads, got 3", kInvalid, [](auto &a) { a.k.size[2] = a.v.size[2] = 3; }},
      {"k: dtype: expected bf16 as q, got fp32", kInvalid, [](auto &a) { a.k.dtype = HEDDLE_FP32; }},
      {"q: stride of row: expected a multiple of 16 bytes, got 1026 bytes", kInvalid,
       [](auto &a) { a.q.stride[1] += 1; }},
      {"k: stride of dim: expected 1, got 2; make the tensor contiguous in dim", kInvalid,
       [](auto &a) { a.k.stride[3] = 2; }},
      {"out: stride of head: expected rows that do not overlap, got 0", kInvalid, [](auto &a) { a.out.stride[2] = 0; }},
      {"v: address: expected device memory at a multiple of 16 bytes, got remainder 2", kInvalid,
       [](auto &a) { a.v.ptr = at(0x3000002); }},
      {"out: address: expected device memory at a multiple of 16 bytes, got null", kInvalid,
       [](auto &a) { a.out.ptr = nullptr; }},
      {"lse: address: expected device memory at a multiple of 4 bytes, got null", kInvalid,
       [](auto &a) { a.lse = nullptr; }},
      {"scale: expected a finite number", kInvalid, [](auto &a) { a.scale = std::numeric_limits<float>::quiet_NaN(); }},
      {"run-time size number 1 is missing", kInvalid, [](auto &a) { a.operand_count = 1; }},
      {"no kernel serves flags yet", kUnsupported, [](auto &a) { a.flags = 2; }},
      {"the reserved field of a tensor is not zero", kUnsupported, [](auto &a) { a.out.reserved = 1; }},
      {"a call of kind forward has no page_size", kUnsupported, [](auto &a) { a.page_size = 16; }},
      {"struct_size: expected at least 336, at most 4096 and a multiple of 8, got 0; set it to the sizeof of the "
       "struct",
       kInvalid, [](auto &a) { a.struct_size = 0; }},
      {"got 340;", kInvalid, [](auto &a) { a.struct_size = 340; }}};
  for (const Case &refused : cases)
    checkRefused(session, refused);
}

TEST_CASE("[11] arguments of an older version end where its struct ended") {
  Session session;
  ForwardCall call;
  call.args.k_origin = 5;
  call.args.operand_count = 77; // of a field that the caller's version does not have
  call.args.struct_size = offsetof(heddle_attention_args, operands);
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK_MESSAGE(lastMessageHas("run-time size number 0 is missing"), std::string(heddle_last_message()));
  // Where the fields behind the end hold what zero means, the older struct is as good as the newer one.
  ScratchFolder folder;
  {
    Store store = test::openStore(folder / "old.db", test::writing());
    KernelRecord record = test::forwardRecord("no sizes");
    LaunchPlan plan{PlanService(Kind())};
    KernelLaunch &launch = plan.launches.emplace_back();
    launch.appendI32(LaunchSymbol::kOrigin);
    record.plan = plan.str();
    Winner winner;
    static_cast<WinnerKey &>(winner) = WinnerKey(record, {0, 3, 2}, {"Fake GPU", "sm_90", 132, 140});
    winner.contentKey = record.contentKey;
    test::require(store.publish(record, winner));
    test::require(store.setName({"causal", record.pattern, "", 0}));
  }
  heddle_store *store = nullptr;
  heddle_kernel *kernel = nullptr;
  const heddle_kernel_query query = causalQuery();
  REQUIRE(heddle_store_open((folder / "old.db").c_str(), 0, &store) == HEDDLE_OK);
  REQUIRE_MESSAGE(heddle_kernel_find(store, session.device, &query, &kernel) == HEDDLE_OK,
                  std::string(heddle_last_message()));
  auto keyOrigin = [&](uint32_t structSize) {
    int32_t origin = -1;
    call.args.struct_size = structSize;
    REQUIRE_MESSAGE(heddle_kernel_launch(kernel, nullptr, &call.args) == HEDDLE_OK, std::string(heddle_last_message()));
    std::memcpy(&origin, fakeCudaLastLaunch()->params, sizeof origin);
    return origin;
  };
  CHECK(keyOrigin(offsetof(heddle_attention_args, operands)) == 5);
  CHECK(keyOrigin(offsetof(heddle_attention_args, k_origin)) == 0);
  CHECK(keyOrigin(offsetof(heddle_attention_args, q_origin)) == 0);
  heddle_kernel_close(kernel);
  heddle_store_close(store);
}

TEST_CASE("[11] arguments of a newer version are taken while the fields that are new are zero") {
  Session session;
  ForwardCall call;
  struct Newer {
    heddle_attention_args args;
    uint64_t added[2];
  } newer = {call.args, {0, 0}};
  newer.args.struct_size = sizeof newer;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &newer.args) == HEDDLE_OK);
  newer.added[1] = 1;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &newer.args) == HEDDLE_UNSUPPORTED);
  CHECK(lastMessageHas("belongs to a field of a newer version and is not zero"));
  CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
}

TEST_CASE("[11] queries and information of older and newer versions") {
  Session session;
  struct NewerQuery {
    heddle_kernel_query query;
    uint64_t added;
  } query = {causalQuery(), 0};
  heddle_kernel *kernel = nullptr;
  query.query.struct_size = sizeof query;
  CHECK(heddle_kernel_find(session.store, session.device, &query.query, &kernel) == HEDDLE_OK);
  heddle_kernel_close(std::exchange(kernel, nullptr));
  query.added = 3;
  CHECK(heddle_kernel_find(session.store, session.device, &query.query, &kernel) == HEDDLE_UNSUPPORTED);
  query.query.batch = -7; // not there for a caller whose struct ends before it
  query.query.struct_size = offsetof(heddle_kernel_query, batch);
  CHECK(heddle_kernel_find(session.store, session.device, &query.query, &kernel) == HEDDLE_OK);
  heddle_kernel_close(kernel);

  struct NewerInfo {
    heddle_kernel_info info;
    uint64_t added;
  } info;
  std::memset(&info, 0xee, sizeof info);
  info.info.struct_size = sizeof info;
  CHECK(heddle_kernel_get_info(session.kernel, &info.info) == HEDDLE_OK);
  CHECK(info.info.struct_size == sizeof info);
  CHECK(info.info.median_us == 7.5);
  CHECK(info.added == 0);
  std::memset(&info, 0xee, sizeof info);
  info.info.struct_size = offsetof(heddle_kernel_info, config);
  CHECK(heddle_kernel_get_info(session.kernel, &info.info) == HEDDLE_OK);
  CHECK(std::string(info.info.generator) == "g1");
  CHECK(reinterpret_cast<uintptr_t>(info.info.config) == 0xeeeeeeeeeeeeeeee);
  info.info.struct_size = 4;
  CHECK(heddle_kernel_get_info(session.kernel, &info.info) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("kernel info: struct_size: expected at least 8"));
}

TEST_CASE("[12] closed handles are refused, closing twice does nothing") {
  Session session;
  ForwardCall call;
  heddle_prepared *prepared = nullptr;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  heddle_store *store = std::exchange(session.store, nullptr);
  heddle_device *device = std::exchange(session.device, nullptr);
  heddle_kernel *kernel = std::exchange(session.kernel, nullptr), *found = nullptr;
  const int modules = fakeCudaLiveModules();
  for (int times = 0; times < 2; ++times) {
    heddle_prepared_close(prepared);
    heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
  }
  CHECK(fakeCudaLiveModules() == modules - 1); // what handles hold goes with the close
  CHECK(heddle_prepared_launch(prepared, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("launch: prepared: this handle was closed"));
  CHECK(heddle_kernel_launch(kernel, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("launch: kernel: this handle was closed"));
  uint64_t bytes = 0;
  heddle_kernel_info info = {};
  info.struct_size = sizeof info;
  CHECK(heddle_kernel_workspace(kernel, &call.args, &bytes) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_get_info(kernel, &info) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_prepare(kernel, &call.args, &prepared) == HEDDLE_INVALID_ARGUMENT);
  const heddle_kernel_query query = causalQuery();
  CHECK(heddle_kernel_find(store, device, &query, &found) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("find kernel: store: this handle was closed"));
  CHECK(heddle_store_add(store, "/nowhere", 0) == HEDDLE_INVALID_ARGUMENT);
  Session other;
  CHECK(heddle_kernel_find(other.store, device, &query, &found) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("find kernel: device: this handle was closed"));
  CHECK(found == nullptr);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
}

TEST_CASE("[12] a closed handle is known as such until 1024 others were closed") {
  Session session;
  const heddle_kernel_query query = causalQuery();
  auto closedKernel = [&] {
    heddle_kernel *kernel = nullptr;
    REQUIRE(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_OK);
    heddle_kernel_close(kernel);
    return kernel;
  };
  heddle_kernel *first = closedKernel();
  for (int i = 0; i < 1023; ++i)
    closedKernel();
  ForwardCall call;
  CHECK(heddle_kernel_launch(first, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK(lastMessageHas("this handle was closed"));
}

TEST_CASE("[5] addresses that this GPU cannot reach are refused when a call is prepared") {
  Session session;
  ForwardCall call;
  heddle_prepared *prepared = nullptr;
  fakeCudaSetOwner(call.args.k.ptr, 1);
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_INVALID_ARGUMENT);
  CHECK_MESSAGE(lastMessageHas("k: address: expected memory that GPU 0 can reach, got memory of GPU 1"),
                std::string(heddle_last_message()));
  fakeCudaReset();
  fakeCudaSetOwner(call.args.lse, -1);
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_INVALID_ARGUMENT);
  CHECK_MESSAGE(lastMessageHas("lse: address: expected memory that GPU 0 can reach, got memory that the driver does "
                               "not know: of the host, or freed"),
                std::string(heddle_last_message()));
  CHECK(prepared == nullptr);
  fakeCudaSetPageable(1); // then kernels do reach it
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  heddle_prepared_close(prepared);
  fakeCudaReset();
  fakeCudaFail("cuPointerGetAttribute", 999, 0); // a driver that says nothing refuses nothing
  CHECK(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  heddle_prepared_close(prepared);
}

TEST_CASE("[5] a stream of another GPU") {
  Session session;
  ForwardCall call;
  heddle_prepared *prepared = nullptr;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  DeviceStream stream = test::require(DeviceStream::create(test::require(Device::open(1))));
  for (bool isPrepared : {false, true}) {
    const heddle_status status = isPrepared ? heddle_prepared_launch(prepared, stream.handle())
                                            : heddle_kernel_launch(session.kernel, stream.handle(), &call.args);
    CHECK(status == HEDDLE_INVALID_ARGUMENT);
    CHECK_MESSAGE(lastMessageHas("launch: stream: expected one of the context that the kernel is loaded into, on GPU "
                                 "0, got one of another context "
                                 "on GPU 1; launch: cuLaunchKernel failed: CUDA_ERROR_INVALID_HANDLE"),
                  std::string(heddle_last_message()));
  }
  int launches = 0;
  fakeCudaLaunches(&launches);
  CHECK(launches == 0);
  DeviceStream own = test::require(DeviceStream::create(test::require(Device::open(0))));
  CHECK(heddle_prepared_launch(prepared, own.handle()) == HEDDLE_OK);
  heddle_prepared_close(prepared);
}

// Every pattern serves every number of heads; what may not fit is that of k to that of q, among the arguments above.
TEST_CASE("[2] a kernel for another GPU, another head dim, another type") {
  Session session;
  heddle_kernel *kernel = nullptr;
  heddle_kernel_query query = causalQuery();
  query.head_dim = query.value_dim = 256;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK_MESSAGE(lastMessageHas("no kernel for pattern 'causal' forward bf16 head_dim=256 value_dim=256"),
                std::string(heddle_last_message()));
  query = causalQuery();
  query.dtype = HEDDLE_FP16;
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(lastMessageHas("fp16"));
  query = causalQuery();
  query.kind = "backward";
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK_MESSAGE(lastMessageHas("that runs on sm_90; `heddle compile --backward --db=FILE` makes one"),
                std::string(heddle_last_message()));
  query = causalQuery();
  fakeCudaSetArch(75);
  fakeCudaSetCurrent(1); // a context that no other handle describes as another architecture
  heddle_device *older = nullptr;
  REQUIRE_MESSAGE(heddle_device_open(-1, &older) == HEDDLE_OK, std::string(heddle_last_message()));
  CHECK(heddle_kernel_find(session.store, older, &query, &kernel) == HEDDLE_NOT_FOUND);
  CHECK_MESSAGE(lastMessageHas("that runs on sm_75; compile or tune the pattern for it"),
                std::string(heddle_last_message()));
  CHECK(kernel == nullptr);
  heddle_device_close(older);
  fakeCudaSetCurrent(-1);
}

TEST_CASE("[13] a store whose file is taken away while it is open") {
  Session session;
  const std::string path = session.folder / "kernels.db";
  const heddle_kernel_query query = causalQuery();
  heddle_kernel *kernel = nullptr;
  std::filesystem::remove(path);
  // from memory: the kernel is open
  CHECK(heddle_kernel_find(session.store, session.device, &query, &kernel) == HEDDLE_OK);
  CHECK(infoOf(kernel).content_key == infoOf(session.kernel).content_key);
  heddle_kernel_close(std::exchange(kernel, nullptr));
  ForwardCall call;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK);
  heddle_kernel_close(std::exchange(session.kernel, nullptr));
  const heddle_status status = heddle_kernel_find(session.store, session.device, &query, &kernel);
  CHECK((status == HEDDLE_OK || status == HEDDLE_IO)); // what SQLite makes of a file without a name
  CHECK((status == HEDDLE_OK) == (kernel != nullptr));
  heddle_kernel_close(kernel);
}

TEST_CASE("[13] a store whose file is damaged or cut while it is open") {
  for (uint32_t flags : {0u, uint32_t(HEDDLE_OPEN_IMMUTABLE)})
    for (bool isCut : {false, true}) {
      Session session;
      const std::string path = session.folder / "kernels.db";
      heddle_store *store = nullptr;
      heddle_kernel *kernel = nullptr;
      REQUIRE(heddle_store_open(path.c_str(), flags, &store) == HEDDLE_OK);
      heddle_kernel_close(std::exchange(session.kernel, nullptr));
      const auto bytes = std::filesystem::file_size(path);
      if (isCut)
        std::filesystem::resize_file(path, 4096);
      else
        test::writeFile(path, std::string(bytes, 'x'));
      const heddle_kernel_query query = causalQuery();
      const heddle_status status = heddle_kernel_find(store, session.device, &query, &kernel);
      CHECK((status == HEDDLE_CORRUPT || status == HEDDLE_IO));
      CHECK_MESSAGE(lastMessageHas("kernels.db"), std::string(heddle_last_message()));
      CHECK(kernel == nullptr);
      CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 1); // that of the session
      heddle_store_close(store);
    }
}
