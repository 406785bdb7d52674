//===- device_launch_test.cpp - loading and launching -----------------------===//
// Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "counted_allocations.h"
#include "device_fixture.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::fake;

TEST_CASE("the parameter block is the C++ struct, byte for byte") {
  startFake();
  Device device = require(Device::open(0));
  DeviceStream stream = require(DeviceStream::create(device));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  fakeCudaExpectParams(sizeof(ForwardParams));
  ForwardCall call;
  call.args.k_origin = 5;
  call.args.q.stride[0] = 640000;
  require(kernel.launch(stream.handle(), call.args));
  const Launch &launch = *fakeCudaLastLaunch();
  CHECK(launch.grid[0] == 8 * 8 * 2);
  CHECK(launch.grid[1] == 1);
  CHECK(launch.block[0] == 128);
  CHECK(launch.sharedBytes == 65536);
  CHECK(launch.stream == stream.handle());
  CHECK(std::string(launch.entry) == "heddle_kernel");
  ForwardParams params = {};
  params.q = call.args.q.ptr, params.k = call.args.k.ptr, params.v = call.args.v.ptr, params.out = call.args.out.ptr;
  params.lse = call.args.lse;
  for (int i = 0; i < 3; ++i) {
    params.qStride[i] = call.args.q.stride[i];
    params.kStride[i] = call.args.k.stride[i];
    params.vStride[i] = call.args.v.stride[i];
    params.outStride[i] = call.args.out.stride[i];
  }
  params.batch = 2, params.heads = 8, params.kvHeads = 4, params.seqlenQ = 1000, params.seqlenK = 3000;
  params.qOrigin = 2000, params.kOrigin = 5;
  params.scaleLog2 = float(0.5 * std::log2(std::exp(1.0)));
  params.param[0] = 512, params.param[1] = -3;
  CHECK(launch.paramBytes == sizeof(params));
  CHECK(std::memcmp(launch.params, &params, sizeof(params)) == 0);
}

TEST_CASE("a scale of 0 means 1 / sqrt(head_dim)") {
  startFake();
  Kernel kernel = require(Kernel::load(require(Device::open(0)), forwardRecord()));
  ForwardCall call;
  call.args.scale = 0;
  require(kernel.launch(nullptr, call.args));
  ForwardParams params;
  std::memcpy(&params, fakeCudaLastLaunch()->params, sizeof(params));
  CHECK(params.scaleLog2 == doctest::Approx(std::log2(std::exp(1.0)) / 8));
}

TEST_CASE("[4] a launch allocates nothing, waits for nothing and makes two driver calls, a graph's three") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  ForwardCall call;
  PreparedLaunch prepared = require(kernel.prepare(call.args));
  fakeCudaSetCurrent(0);
  require(kernel.launch(nullptr, call.args));
  fakeCudaReset();
  long before = allocationCount;
  for (int i = 0; i < 10; ++i)
    if (!kernel.launch(nullptr, call.args).isOk() || !prepared.launch(nullptr).isOk())
      FAIL("launch failed");
  CHECK(allocationCount == before);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 10);
  CHECK(fakeCudaCalls("cuGraphLaunch") == 10);
  CHECK(fakeCudaCalls("cuStreamIsCapturing") == 10);
  CHECK(fakeCudaCalls("cuCtxGetCurrent") == 20);
  CHECK(fakeCudaCalls(nullptr) == 50);
}

TEST_CASE("[4] from a thread without a context the launch pushes and pops it") {
  startFake();
  Device device = require(Device::open(1));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  ForwardCall call;
  fakeCudaSetCurrent(0);
  void *mine = fakeCudaCurrent();
  require(kernel.launch(nullptr, call.args));
  CHECK(fakeCudaCurrent() == mine);
  CHECK(fakeCudaLastLaunch()->context != mine);
  std::thread([&] {
    CHECK(kernel.launch(nullptr, call.args).isOk());
    CHECK(fakeCudaCurrent() == nullptr);
  }).join();
}

TEST_CASE("[6] threads load one record once and launch at once") {
  startFake();
  int before = fakeCudaLiveModules();
  {
    Device device = require(Device::open(0));
    KernelRecord record = forwardRecord("shared");
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    std::vector<Kernel> kernels(8, require(Kernel::load(device, record)));
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        Result<Device> own = Device::open(0);
        Result<Kernel> kernel = own ? Kernel::load(*own, record) : Result<Kernel>(own.status());
        ForwardCall call;
        call.operands[0].value.i64 = t;
        for (int i = 0; kernel && i < 200; ++i)
          failures += !kernel->launch(nullptr, call.args).isOk();
        failures += !kernel.isOk();
      });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(failures == 0);
    CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 1);
    CHECK(fakeCudaCalls("cuLaunchKernel") == 1600);
    CHECK(fakeCudaLiveModules() == before + 1);
  }
  CHECK(fakeCudaLiveModules() == before);
}

TEST_CASE("one record in two contexts is two modules") {
  startFake();
  KernelRecord record = forwardRecord("two");
  Kernel first = require(Kernel::load(require(Device::open(0)), record));
  Kernel second = require(Kernel::load(require(Device::open(1)), record));
  CHECK(fakeCudaCalls("cuModuleLoadDataEx") == 2);
  ForwardCall call;
  require(first.launch(nullptr, call.args));
  require(second.launch(nullptr, call.args));
}

TEST_CASE("clears, workspace and tensor maps are evaluated") {
  startFake();
  Device device = require(Device::open(0));
  DeviceStream stream = require(DeviceStream::create(device));
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  const PointerSource region = plan.appendRegion("room", LaunchExpr(LaunchSymbol::batch) * 256);
  launch.clears.push_back({region, 256, 64, 9});
  TensorMapSpec map;
  map.source = Role::k;
  map.offsetBytes = 32;
  map.dims = {64, LaunchSymbol::seqlenK, LaunchSymbol::batch};
  map.strideBytes = {LaunchExpr(strideOf(Role::k, StrideDim::row)) * 2,
                     LaunchExpr(strideOf(Role::k, StrideDim::batch)) * 2};
  map.box = {64, 128, 1};
  map.elementStride = {1, LaunchExpr::param(0), 1};
  map.swizzleBytes = 64;
  launch.appendTensorMap(map);
  launch.appendPointer(region);
  launch.appendPointer(PointerSource::operand(3));
  KernelRecord record = forwardRecord("maps");
  record.plan = plan.str();
  Kernel kernel = require(Kernel::load(device, record));
  ForwardCall call;
  call.operands[0] = {3, HEDDLE_OPERAND_POINTER, {}};
  call.operands[0].value.ptr = reinterpret_cast<const void *>(0x7000);
  call.operands[1] = {0, HEDDLE_OPERAND_INT, {}};
  call.operands[1].value.i64 = 4;
  CHECK(*kernel.workspaceBytes(call.args) == 512);
  CHECK(kernel.launch(stream.handle(), call.args).message().find("workspace_bytes: expected at least 512, got 0") !=
        std::string::npos);
  DeviceBuffer workspace = require(DeviceBuffer::allocate(device, 768));
  call.args.workspace_bytes = 512;
  CHECK(kernel.launch(stream.handle(), call.args).message().find("workspace: expected device memory") !=
        std::string::npos);
  call.args.workspace = static_cast<char *>(workspace.data()) + 16;
  CHECK(kernel.launch(stream.handle(), call.args).message().find("unaligned") != std::string::npos);
  call.args.workspace = workspace.data();
  require(kernel.launch(stream.handle(), call.args));
  int clearCount = 0;
  const Clear *clears = fakeCudaClears(&clearCount);
  REQUIRE(clearCount == 1);
  CHECK(clears[0].address == workspace.address() + 256);
  CHECK(clears[0].words == 64);
  CHECK(clears[0].value == 9);
  CHECK(clears[0].stream == stream.handle());
  const TensorMapCall &encoded = *fakeCudaLastTensorMap();
  CHECK(encoded.dtype == 9);
  CHECK(encoded.rank == 3);
  CHECK(encoded.swizzle == 2);
  CHECK(encoded.address == static_cast<char *>(call.args.k.ptr) + 32);
  CHECK(encoded.dims[1] == 3000);
  CHECK(encoded.strides[0] == 4 * 64 * 2);
  CHECK(encoded.strides[1] == 3000 * 4 * 64 * 2);
  CHECK(encoded.steps[1] == 4);
  const unsigned char *params = fakeCudaLastLaunch()->params;
  uint64_t word = 0, pointer = 0;
  std::memcpy(&word, params, 8);
  CHECK(word == 0x7a70616d00000003u);
  std::memcpy(&pointer, params + 128, 8);
  CHECK(pointer == workspace.address());
  std::memcpy(&pointer, params + 136, 8);
  CHECK(pointer == 0x7000);
  call.operands[1].value.i64 = 99;
  Status refused = kernel.launch(stream.handle(), call.args);
  CHECK(refused.message().find("tensor map of k: cuTensorMapEncodeTiled failed: CUDA_ERROR_INVALID_VALUE") !=
        std::string::npos);
  CHECK(refused.message().find(
            "; rank 3, dims (64, 3000, 2), strides (512, 1536000) bytes, box (64, 128, 1), steps (1, 99, 1): "
            "step 1 must be 1 to 8") != std::string::npos);
}

TEST_CASE("PTX is taken where the cubin does not run, and the kernel says so") {
  startFake();
  CHECK(!require(Kernel::load(require(Device::open(0)), forwardRecord("native"))).isJitCompiled());
  fakeCudaSetArch(120);
  fakeCudaSetCurrent(1); // a context that no other handle describes as another architecture
  Device device = require(Device::open());
  CHECK(device.info().identity.arch == "sm_120");
  CHECK(require(Kernel::load(device, forwardRecord("jit"))).isJitCompiled());
  KernelRecord noPtx = forwardRecord("no-ptx"), special = forwardRecord("special");
  noPtx.ptx.clear();
  special.kernelArch = "sm_90a";
  CHECK(Kernel::load(device, noPtx).status().message().find("was compiled for sm_90 without PTX, this GPU is sm_120") !=
        std::string::npos);
  CHECK(Kernel::load(device, special).status().code() == StatusCode::unsupported);
}

TEST_CASE("records that cannot be loaded say why") {
  startFake();
  Device device = require(Device::open(0));
  KernelRecord badPlan = forwardRecord("bad-plan"), badCode = forwardRecord("bad-code"),
               tooNew = forwardRecord("too-new");
  KernelRecord badEntry = forwardRecord("bad-entry"), noKey = forwardRecord("");
  badPlan.plan = "heddle-plan 3\ngrid 1\n";
  badCode.cubin = "garbage";
  tooNew.minDriver = 99000;
  badEntry.plan = "heddle-plan 3\nkind forward\nlaunch other_kernel\n";
  fakeCudaSetJitLog("ptxas says no");
  CHECK(Kernel::load(device, badPlan).status().code() == StatusCode::corrupt);
  CHECK(Kernel::load(device, badPlan).status().message().find("line 2") != std::string::npos);
  Status code = Kernel::load(device, badCode).status();
  CHECK(code.code() == StatusCode::corrupt);
  CHECK(code.message().find("CUDA_ERROR_INVALID_IMAGE") != std::string::npos);
  CHECK(code.message().find("driver log: ptxas says no") != std::string::npos);
  CHECK(Kernel::load(device, tooNew).status().message().find("99000 or later, this is 13000") != std::string::npos);
  CHECK(Kernel::load(device, badEntry).status().message().find("cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND") !=
        std::string::npos);
  CHECK(Kernel::load(device, noKey).status().code() == StatusCode::invalidArgument);
  CHECK(fakeCudaLiveModules() == 0);
}

TEST_CASE("geometry beyond the GPU is refused before the driver sees it") {
  startFake();
  Device device = require(Device::open(0));
  KernelRecord greedy = forwardRecord("greedy"), wide = forwardRecord("wide");
  LaunchPlan plan = emptyPlan();
  plan.launches.front().sharedBytes = 232448;
  greedy.plan = plan.str();
  plan = emptyPlan();
  plan.launches.front().block = 640;
  wide.plan = plan.str();
  ForwardCall call;
  CHECK(require(Kernel::load(device, greedy)).launch(nullptr, call.args).message().find("this GPU allows 231424") !=
        std::string::npos);
  CHECK(require(Kernel::load(device, wide))
            .launch(nullptr, call.args)
            .message()
            .find("640 threads a block, the kernel allows 1 to 512") != std::string::npos);
  CHECK(fakeCudaCalls("cuLaunchKernel") == 0);
}

TEST_CASE("a failing launch names the call and the driver's error") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  ForwardCall call;
  for (const char *symbol : {"cuLaunchKernel", "cuCtxPushCurrent_v2"}) {
    fakeCudaFail(symbol, 700, 0);
    Status failure = kernel.launch(nullptr, call.args);
    fakeCudaFail(symbol, 0, 0);
    CHECK(failure.code() == StatusCode::internal);
    CHECK(failure.message().find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
  }
  fakeCudaFail("cuLaunchKernel", 1, 0);
  CHECK(kernel.launch(nullptr, call.args)
            .message()
            .find("; grid 128 x 1 x 1, 128 threads a block (the kernel allows 512), 65536 bytes of "
                  "dynamic shared memory (this GPU allows 231424), 192 bytes of parameters") != std::string::npos);
  fakeCudaFail("cuLaunchKernel", 0, 0);
  require(kernel.launch(nullptr, call.args));
}

TEST_CASE("[7] nothing to do succeeds without the GPU") {
  startFake();
  Kernel kernel = require(Kernel::load(require(Device::open(0)), forwardRecord()));
  fakeCudaReset();
  ForwardCall call;
  call.args.q = contiguousTensor(nullptr, DType::bf16, {2, 0, 8, 64});
  call.args.out = contiguousTensor(nullptr, DType::bf16, {2, 0, 8, 128});
  call.args.lse = nullptr;
  require(kernel.launch(nullptr, call.args));
  CHECK(fakeCudaCalls(nullptr) == 0);
  // no keys is not nothing: every row must become 0 and -inf
  ForwardCall noKeys;
  noKeys.args.k = contiguousTensor(nullptr, DType::bf16, {2, 0, 4, 64});
  noKeys.args.v = contiguousTensor(nullptr, DType::bf16, {2, 0, 4, 128});
  require(kernel.launch(nullptr, noKeys.args));
  CHECK(fakeCudaCalls("cuLaunchKernel") == 1);
}
