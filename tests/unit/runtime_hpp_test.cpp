//===- runtime_hpp_test.cpp - heddle.hpp, through the shared library --------===//
#include "runtime/Include/heddle.hpp"
#include "counted_allocations.h"
#include "runtime_fixture.h"

#include <cstring>
#include <type_traits>

using namespace heddle::fake;
namespace api = heddle::api;
namespace test = heddle::test;

namespace {

template <class T> T require(api::Result<T> result) {
  REQUIRE_MESSAGE(result, result.status().message());
  return std::move(*result);
}

// What ForwardCall holds, in this header's words.
api::Arguments forwardArguments() {
  const test::ForwardCall call;
  api::Arguments arguments;
  static_cast<heddle_attention_args &>(arguments) = call.args;
  return arguments.size(0, 512).size(1, -3);
}

struct Opened {
  test::ScratchFolder folder;
  std::string path = (test::startFake(), test::makeNamedStore(folder));
  api::Store store = require(api::Store::open(path));
  api::Device device = require(api::Device::open(0));
  api::Kernel kernel = require(api::Kernel::find(store, device, api::Query("causal", forwardArguments())));
};

} // namespace

TEST_CASE("handles close what they hold, once, and move") {
  const int modules = fakeCudaLiveModules(), contexts = fakeCudaRetainedContexts();
  {
    Opened opened;
    CHECK(fakeCudaLiveModules() == modules + 1);
    api::Kernel moved = std::move(opened.kernel);
    CHECK(opened.kernel.get() == nullptr);
    CHECK(moved.launch(forwardArguments()).isOk());
    moved = require(api::Kernel::find(opened.store, opened.device, api::Query("causal", forwardArguments())));
    CHECK(fakeCudaLiveModules() == modules + 1);
  }
  CHECK(fakeCudaLiveModules() == modules);
  CHECK(fakeCudaRetainedContexts() == contexts);
  CHECK(!std::is_copy_constructible_v<api::Store>);
  CHECK(!std::is_copy_constructible_v<api::Kernel>);
  CHECK(!std::is_copy_assignable_v<api::Prepared>);
  CHECK(std::is_nothrow_move_constructible_v<api::Device>);
}

TEST_CASE("prepared calls outlive store, device and kernel") {
  std::optional<api::Prepared> prepared;
  {
    Opened opened;
    prepared = require(opened.kernel.prepare(forwardArguments()));
  }
  CHECK(prepared->launch().isOk());
  CHECK(fakeCudaCalls("cuGraphLaunch") == 1);
}

TEST_CASE("failures are values with the message of heddle.h") {
  Opened opened;
  api::Result<api::Store> missing = api::Store::open("/nowhere/kernels.db");
  CHECK(!missing);
  CHECK(missing.status().code() == HEDDLE_NOT_FOUND);
  CHECK(missing.status().message() == heddle_last_message());
  CHECK(api::Device::open(9).status().message().find("no GPU number 9") != std::string::npos);
  CHECK(opened.store.add("/nowhere/kernels.db").code() == HEDDLE_NOT_FOUND);
  CHECK(api::Kernel::find(opened.store, opened.device, api::Query("full", forwardArguments()))
            .status()
            .message()
            .find("it names causal") != std::string::npos);
  api::Arguments wrong = forwardArguments();
  wrong.q.dtype = HEDDLE_FP16;
  for (const api::Status &status : {opened.kernel.launch(wrong), opened.kernel.prepare(wrong).status(),
                                    opened.kernel.workspaceBytes(wrong).status()}) {
    CHECK(status.code() == HEDDLE_INVALID_ARGUMENT);
    CHECK(status.message().find("q: dtype: expected bf16, got fp16") != std::string::npos);
  }
  CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
}

TEST_CASE("arguments are values: a copy shares nothing, ids travel with their kinds") {
  api::Arguments arguments;
  CHECK(arguments.struct_size == sizeof(heddle_attention_args));
  CHECK(arguments.c().operand_count == 0);
  arguments.size(0, 7);
  api::Arguments copy = arguments;
  copy.number(1, 2.5).tensor(2, &copy);
  CHECK(arguments.c().operand_count == 1);
  const heddle_attention_args args = copy.c();
  REQUIRE(args.operand_count == 3);
  CHECK(args.operands[0].kind == HEDDLE_OPERAND_INT);
  CHECK(args.operands[0].value.i64 == 7);
  CHECK(args.operands[1].kind == HEDDLE_OPERAND_FLOAT);
  CHECK(args.operands[1].value.f64 == 2.5);
  CHECK(args.operands[2].kind == HEDDLE_OPERAND_POINTER);
  CHECK(args.operands[2].value.ptr == &copy);
  CHECK(args.operands[2].id == 2);
}

TEST_CASE("a query for a call has the call's sizes") {
  const api::Query query("causal", forwardArguments());
  CHECK(query.struct_size == sizeof(heddle_kernel_query));
  CHECK(query.dtype == HEDDLE_BF16);
  CHECK(query.head_dim == 64);
  CHECK(query.value_dim == 128);
  CHECK(query.batch == 2);
  CHECK(query.heads == 8);
  CHECK(query.kv_heads == 4);
  CHECK(query.seqlen_q == 1000);
  CHECK(query.tiles_per_row == 0);
}

TEST_CASE("information and workspace") {
  Opened opened;
  const heddle_kernel_info info = opened.kernel.info();
  CHECK(std::string(info.content_key) == "kernel-1");
  CHECK(info.median_us == 7.5);
  CHECK(*opened.kernel.workspaceBytes(forwardArguments()) == 0);
}

TEST_CASE("[4] launches through this header allocate nothing") {
  Opened opened;
  const api::Arguments arguments = forwardArguments();
  const api::Prepared prepared = require(opened.kernel.prepare(arguments));
  const long before = test::allocationCount;
  for (int i = 0; i < 10; ++i)
    if (!prepared.launch() || !opened.kernel.launch(arguments))
      FAIL("a launch failed");
  CHECK(test::allocationCount == before);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 10);
  CHECK(fakeCudaCalls("cuGraphLaunch") == 10);
}

TEST_CASE("counters, and an arena that closes itself") {
  Opened opened;
  const int64_t launches = api::stats().launches;
  REQUIRE(opened.kernel.launch(forwardArguments()));
  CHECK(api::stats().launches - launches == 1);
  CHECK(require(api::statsText()).find("\nheddle_launches_total{") != std::string::npos);
  const int pools = fakeCudaLivePools();
  {
    const api::Arena arena = require(api::Arena::open(opened.device, 4096));
    void *memory = require(arena.take(1000));
    CHECK(!arena.take(4000));
    REQUIRE(arena.give(memory));
    REQUIRE(arena.trim());
    CHECK(require(arena.stats()).refusals == 1);
    CHECK(fakeCudaLivePools() > pools);
  }
  CHECK(fakeCudaLivePools() == pools);
}
