//===- chained_launch_test.cpp - several kernels of one call ------------------===//
// The knob and its reasons, the plan of chained passes as formulas, and what the recording driver sees of a call:
// clears and kernels in order, results of one as the carry of the next, nothing at all where anything is refused.
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/GpuArch.h"
#include "device_fixture.h"
#include "runtime/Core/KernelImages.h"

#include <algorithm>
#include <cstring>

using namespace heddle;
using namespace heddle::test;

namespace {

/// A union of rows at rates 4 and 2 and of all rows.
KernelRequest chainRequest() {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.headDim = 64;
  request.valueDim = 128;
  request.qOrigin = QOriginRule::end;
  request.variants = {{4, {4, 2, 1}}};
  request.passes = {{{{4, {4}}}, 1}, {{{2, {2}}}, 1}, {{{1, {1}}}, 1}};
  return request;
}

constexpr int64_t kMib = 256; // all rows of the calls below in one round

KernelConfig chainedConfig(const Skeleton &skeleton, const KernelRequest &request, int64_t mib = kMib) {
  KernelConfig config = skeleton.defaultConfig(request);
  REQUIRE(config.set("chained_mib", mib).isOk());
  REQUIRE(config.set("block_m", 128).isOk()); // as many threads as the recording driver's kernels allow
  config = skeleton.derived(request, config);
  REQUIRE_FALSE(skeleton.whyInfeasible(request, config).has_value());
  return config;
}

KernelRecord chainRecord(const Skeleton &skeleton, const KernelRequest &request, int64_t mib = kMib) {
  KernelRecord record = forwardRecord("chained-" + std::to_string(mib) + std::string(skeleton.name()));
  record.plan = skeleton.planCall(request, chainedConfig(skeleton, request, mib)).str();
  record.cubin = joinImages({"\x7f"
                             "ELF one",
                             "\x7f"
                             "ELF two",
                             "\x7f"
                             "ELF three"});
  record.ptx = joinImages({"// one", "// two", "// three"});
  return record;
}

/// The first fields of a pass.
struct RowFields {
  int32_t first, rows, ofLse, ofCarry;
};

/// What every parameter block has in a row, behind maps or q, k and v.
struct SharedParams {
  uintptr_t out, lse, carryOut, carryLse;
};

struct Recorded {
  RowFields rows;
  SharedParams pointers;
  const fake::Launch *launch;
};

std::vector<Recorded> launchesWith(const Skeleton &skeleton, const LaunchPlan &plan, int expected = 3) {
  int count = 0;
  const fake::Launch *launches = fake::fakeCudaLaunches(&count);
  REQUIRE(count == expected);
  std::vector<Recorded> result;
  for (int i = 0; i < count; ++i) {
    const bool hasMaps = skeleton.name() == sm90ForwardSkeleton().name();
    const size_t mapBytes = plan.launches[size_t(i) % plan.launches.size()].tensorMaps.size() * 128;
    // maps are aligned to 64 bytes
    const size_t offset = hasMaps ? 64 + mapBytes : sizeof(RowFields) + 3 * sizeof(void *);
    Recorded &recorded = result.emplace_back();
    std::memcpy(&recorded.rows, launches[i].params, sizeof recorded.rows);
    std::memcpy(&recorded.pointers, launches[i].params + offset, sizeof recorded.pointers);
    recorded.launch = launches + i;
  }
  return result;
}

struct ChainCall : ForwardCall {
  DeviceBuffer workspace;

  ChainCall(const Device &device, const Kernel &kernel)
      : workspace(require(DeviceBuffer::allocate(device, require(kernel.workspaceBytes(withoutSizes()))))) {
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
  }

private:
  const AttentionArgs &withoutSizes() {
    args.operands = nullptr;
    args.operand_count = 0;
    return args;
  }
};

// A round has a multiple of 4 * 128 rows: 1024 are all of the call.
constexpr int64_t kRows = 2 * 1024 * 8, kCarryBytes = kRows * 128 * 4, kLseBytes = kRows * 4;

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

} // namespace

TEST_CASE("the knob is there where there are passes, fused is the default, and what forbids it is said") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    KernelRequest request = chainRequest();
    auto knob = [&] {
      const std::vector<Knob> knobs = skeleton->knobs(request);
      return std::any_of(knobs.begin(), knobs.end(), [](const Knob &knob) { return knob.name == "chained_mib"; });
    };
    CHECK(knob());
    CHECK(skeleton->defaultConfig(request).valueOf("chained_mib") == 0);
    KernelConfig config = chainedConfig(*skeleton, request);
    CHECK(config.json().find("\"chained_mib\":256") != std::string::npos);
    CHECK(readConfig(config.str())->valueOf("chained_mib") == 256);
    CHECK(skeleton->traits(request.passRequest(0), config).find("kChainedMib = 256;") != std::string::npos);
    REQUIRE(config.set("chained_mib", -1).isOk());
    CHECK(skeleton->whyInfeasible(request, config)->constraint == "ranges");
    REQUIRE(config.set("chained_mib", 1).isOk());
    request.passes.clear();
    request.whyOnePass = "all rows lie on one lattice";
    CHECK_FALSE(knob());
    CHECK(skeleton->whyInfeasible(request, config)
              ->str()
              .find("chained: the pattern is computed in one pass: all rows lie on one lattice") == 0);
  }
}

TEST_CASE("passes whose maps do not fit one call are refused with the bytes") {
  KernelRequest request = chainRequest();
  while (request.passes.size() < 8) {
    std::vector<int64_t> rates;
    for (int64_t rate = 1; rate <= 8; ++rate)
      rates.push_back(8 * int64_t(request.passes.size()) + rate);
    request.passes.push_back({{{64, rates}}, 1});
  }
  for (PassRates &pass : request.passes)
    for (int64_t rate = 65; rate < 72; ++rate)
      pass.variants.push_back({rate, pass.variants.front().keyRates});
  KernelConfig config = sm90ForwardSkeleton().defaultConfig(request);
  REQUIRE(config.set("chained_mib", 1).isOk());
  const auto rejection = sm90ForwardSkeleton().whyInfeasible(request, config);
  REQUIRE(rejection.has_value());
  CHECK(rejection->constraint == "chained");
  CHECK(rejection->reason.find("8 passes take ") == 0);
}

TEST_CASE("requests of passes are checked") {
  KernelRequest request = chainRequest();
  CHECK(request.validate().isOk());
  CHECK(request.passRequest(0).elements.out == DType::fp32);
  CHECK(request.passRequest(2).elements.out == DType::bf16);
  CHECK(request.passRequest(1).variants[0].queryRate == 2);
  request.passes[1].variants[0].queryRate = 0;
  CHECK_FALSE(request.validate().isOk());
  request.passes.resize(1);
  CHECK(request.validate().message().find("at least two") != std::string::npos);
}

TEST_CASE("kernels run in order, each continuing what the one before it left in the workspace") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    startFake();
    Device device = require(Device::open(0));
    Kernel kernel = require(Kernel::load(device, chainRecord(*skeleton, chainRequest())));
    CHECK(fake::fakeCudaCalls("cuModuleLoadDataEx") == 3);
    ChainCall call(device, kernel);
    const uintptr_t workspace = reinterpret_cast<uintptr_t>(call.workspace.data());
    const int64_t carryBytes = aligned(kCarryBytes) + aligned(kLseBytes);
    CHECK(int64_t(call.args.workspace_bytes) >= 2 * carryBytes);
    fake::fakeCudaReset();
    require(kernel.launch(nullptr, call.args));
    const LaunchPlan &plan = kernel.plan();
    std::vector<Recorded> launches = launchesWith(*skeleton, plan);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(launches[i].rows.first == 0);
      CHECK(launches[i].rows.rows == 1000);
      CHECK(launches[i].rows.ofLse == (i < 2 ? 1024 : 1000));
      CHECK(launches[i].rows.ofCarry == (i > 0 ? 1024 : 1000));
    }
    CHECK(launches[0].pointers.carryOut == 0);
    CHECK(launches[0].pointers.carryLse == 0);
    for (int pass : {0, 1}) { // a pass never writes what it continues
      const uintptr_t carry = workspace + pass * carryBytes;
      CHECK(launches[size_t(pass)].pointers.out == carry);
      CHECK(launches[size_t(pass)].pointers.lse == carry + aligned(kCarryBytes));
      CHECK(launches[size_t(pass) + 1].pointers.carryOut == carry);
      CHECK(launches[size_t(pass) + 1].pointers.carryLse == carry + aligned(kCarryBytes));
      CHECK(launches[size_t(pass)].launch->function != launches[size_t(pass) + 1].launch->function);
    }
    CHECK(launches[2].pointers.out == reinterpret_cast<uintptr_t>(call.args.out.ptr));
    CHECK(launches[2].pointers.lse == reinterpret_cast<uintptr_t>(call.args.lse));
    int clearCount = 0;
    const fake::Clear *clears = fake::fakeCudaClears(&clearCount);
    for (size_t i = 0; i < 3; ++i)
      CHECK(launches[i].launch->clearsBefore == int((i + 1) * plan.launches[i].clears.size()));
    // what a pass asks for itself lies beside what it reads and leaves, not beside all
    for (int i = 0; i < clearCount; ++i) {
      const int pass = i, writes = pass, reads = pass - 1;
      CHECK(clears[i].address + 4 * clears[i].words <= workspace + call.args.workspace_bytes);
      for (int carry : {writes, reads})
        if (carry >= 0 && carry < 2)
          CHECK((clears[i].address >= workspace + (carry + 1) * carryBytes ||
                 clears[i].address + 4 * clears[i].words <= workspace + carry * carryBytes));
    }
  }
}

TEST_CASE("rounds: the passes of some rows, then those of the next, over one carry that does not grow") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    startFake();
    Device device = require(Device::open(0));
    Kernel kernel = require(Kernel::load(device, chainRecord(*skeleton, chainRequest(), 1)));
    ChainCall call(device, kernel);
    const int64_t needed = call.args.workspace_bytes;
    fake::fakeCudaReset();
    require(kernel.launch(nullptr, call.args));
    const LaunchPlan &plan = kernel.plan();
    std::vector<Recorded> launches = launchesWith(*skeleton, plan, 6);
    const uintptr_t workspace = reinterpret_cast<uintptr_t>(call.workspace.data());
    const int64_t outBytes = 2 * 512 * 8 * 128 * 4, carryBytes = outBytes + 2 * 512 * 8 * 4;
    for (size_t i = 0; i < 6; ++i) {
      const size_t round = i / 3, pass = i % 3, first = 512 * round;
      CHECK(launches[i].rows.first == int64_t(first));
      CHECK(launches[i].rows.rows == (round == 0 ? 512 : 488));
      CHECK(launches[i].rows.ofLse == (pass < 2 ? 512 : 1000));
      CHECK(launches[i].rows.ofCarry == (pass > 0 ? 512 : 1000));
      const SharedParams &pointers = launches[i].pointers;
      if (pass < 2) { // row `first` lies where the carry begins
        CHECK(pointers.out + first * 8 * 128 * 4 == workspace + pass * carryBytes);
        CHECK(pointers.lse + first * 4 == workspace + pass * carryBytes + outBytes);
      } else {
        CHECK(pointers.out == reinterpret_cast<uintptr_t>(call.args.out.ptr));
        CHECK(pointers.lse == reinterpret_cast<uintptr_t>(call.args.lse));
      }
      if (pass > 0)
        CHECK(pointers.carryOut == launches[i - 1].pointers.out);
    }
    // Without parts and chains of items, what kernels ask for themselves is a counter at most.
    call.args.q.size[1] = call.args.out.size[1] = 100000;
    CHECK(require(kernel.workspaceBytes(call.args)) - needed <= 1 << 20);
    CHECK(needed >= 2 * carryBytes);
    // A prepared launch makes the same launches.
    call.args.q.size[1] = call.args.out.size[1] = 1000;
    const std::vector<Recorded> first = launches;
    PreparedLaunch prepared = require(kernel.prepare(call.args));
    for (int again = 0; again < 2; ++again) {
      fake::fakeCudaReset();
      require(prepared.launch(nullptr));
      launches = launchesWith(*skeleton, plan, 6);
      for (size_t i = 0; i < 6; ++i) {
        CHECK(std::memcmp(&launches[i].rows, &first[i].rows, sizeof(RowFields)) == 0);
        CHECK(std::memcmp(&launches[i].pointers, &first[i].pointers, sizeof(SharedParams)) == 0);
      }
    }
  }
}

TEST_CASE("rates that meet too rarely are refused") {
  KernelRequest request = chainRequest();
  for (int64_t rate : {61, 59, 53})
    request.passes.push_back({{{rate, {1}}}, 1});
  KernelConfig config = portableForwardSkeleton().defaultConfig(request);
  REQUIRE(config.set("chained_mib", 1).isOk());
  CHECK(portableForwardSkeleton().whyInfeasible(request, config)->reason.find("more than 4096 classes") !=
        std::string::npos);
}

TEST_CASE("strides of passes but the last are those of the carry, and a carry of the caller enters the first") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, chainRecord(portableForwardSkeleton(), chainRequest())));
  ChainCall call(device, kernel);
  float carry[4];
  alignas(16) static float carryOut[4];
  call.args.carry_out = carryOut;
  call.args.carry_lse = carry;
  call.args.out.stride[1] = 4096;
  call.args.out.stride[0] = 4096 * 1000;
  fake::fakeCudaReset();
  require(require(kernel.prepare(call.args)).launch(nullptr));
  int count = 0;
  const fake::Launch *launches = fake::fakeCudaLaunches(&count);
  REQUIRE(count == 3);
  for (int i = 0; i < 3; ++i) {
    ForwardParams params;
    std::memcpy(&params, launches[i].params + sizeof(RowFields), sizeof params);
    const auto *base = static_cast<const char *>(call.workspace.data());
    const int64_t place = i == 2 ? aligned(kCarryBytes) + aligned(kLseBytes) : 0;
    CHECK(static_cast<const void *>(params.carryOut) == (i == 0 ? static_cast<const void *>(carryOut) : base + place));
    CHECK(params.outStride[0] == (i == 2 ? 4096 * 1000 : 1024 * 8 * 128));
    CHECK(params.outStride[1] == (i == 2 ? 4096 : 8 * 128));
    CHECK(params.outStride[2] == 128);
    CHECK(params.q == call.args.q.ptr);
    CHECK(params.seqlenQ == 1000);
    CHECK(params.qOrigin == 2000);
  }
}

TEST_CASE("nothing is launched where something is refused, and nothing where there are no rows") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, chainRecord(sm90ForwardSkeleton(), chainRequest())));
  ChainCall call(device, kernel);
  fake::fakeCudaReset();
  call.args.workspace_bytes -= 1;
  CHECK(kernel.launch(nullptr, call.args).message().find("workspace_bytes") != std::string::npos);
  call.args.workspace_bytes += 1;
  call.args.q.size[1] = call.args.out.size[1] = 0;
  call.args.lse = nullptr;
  CHECK(kernel.launch(nullptr, call.args).isOk());
  CHECK(fake::fakeCudaCalls("cuLaunchKernel") == 0);
}

TEST_CASE("a failing kernel ends the call, and records without its codes are corrupt") {
  startFake();
  Device device = require(Device::open(0));
  KernelRecord record = chainRecord(sm90ForwardSkeleton(), chainRequest());
  {
    Kernel kernel = require(Kernel::load(device, record));
    ChainCall call(device, kernel);
    fake::fakeCudaReset();
    fake::fakeCudaFail("cuLaunchKernel", 719, 1);
    CHECK_FALSE(kernel.launch(nullptr, call.args).isOk());
    CHECK(fake::fakeCudaCalls("cuLaunchKernel") == 2);
  }
  fake::fakeCudaReset();
  const int modules = fake::fakeCudaLiveModules();
  record.contentKey = "two of three";
  record.cubin = joinImages({"\x7f"
                             "ELF one",
                             "\x7f"
                             "ELF two"});
  CHECK(Kernel::load(device, record).status().code() == StatusCode::corrupt);
  record.contentKey = "one is unreadable";
  record.cubin = joinImages({"\x7f"
                             "ELF one",
                             "\x7f"
                             "ELF two",
                             "no code"});
  CHECK(Kernel::load(device, record).status().code() == StatusCode::corrupt);
  CHECK(fake::fakeCudaLiveModules() == modules);
}

TEST_CASE("a launch of several kernels allocates nothing and makes one driver call for each, and each clear") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, chainRecord(portableForwardSkeleton(), chainRequest())));
  ChainCall call(device, kernel);
  fake::fakeCudaSetCurrent(0);
  fake::fakeCudaReset();
  require(kernel.launch(nullptr, call.args));
  CHECK(fake::fakeCudaCalls("cuLaunchKernel") == 3);
  CHECK(fake::fakeCudaCalls("cuCtxGetCurrent") == 1);
  CHECK(fake::fakeCudaCalls(nullptr) == 4);
}
