//===- device_tensor_map_test.cpp - tensor maps of a call -------------------===//
// Any stride where nobody steps, empty tensors, and refusals that name the limit.
#include "device_fixture.h"

using namespace heddle;
using namespace heddle::test;
using namespace heddle::fake;

namespace {

// Row numbers, residues of rate 4, heads, batch of one operand.
TensorMapSpec residueMap(Role source, LaunchSymbol rows, LaunchSymbol firstStride) {
  auto bytes = [&](int i) { return LaunchExpr(LaunchSymbol(int(firstStride) + i)) * 2; };
  TensorMapSpec map;
  map.source = {source};
  map.dims = {64, max(floorDiv(rows, 4), 1), 4, LaunchSymbol::kvHeads, LaunchSymbol::batch};
  map.strideBytes = {bytes(1) * 4, bytes(1), bytes(2), bytes(0)};
  map.box = {64, 64, 1, 1, 1};
  map.swizzleBytes = 128;
  return map;
}

KernelRecord residueRecord(const char *key, const TensorMapSpec &map) {
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.appendTensorMap(map);
  KernelRecord record = forwardRecord(key);
  record.plan = plan.str();
  return record;
}

} // namespace

TEST_CASE("tensor maps of dimensions of size 1 take any stride") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel =
      require(Kernel::load(device, residueRecord("single", residueMap(Role::k, LaunchSymbol::seqlenK,
                                                                      strideOf(Role::k, StrideDim::batch)))));
  ForwardCall call;
  call.args.operand_count = 0;
  call.args.q = contiguousTensor(call.args.q.ptr, DType::bf16, {1, 1, 8, 64});
  call.args.out = contiguousTensor(call.args.out.ptr, DType::bf16, {1, 1, 8, 128});
  call.args.k = contiguousTensor(call.args.k.ptr, DType::bf16, {1, 1, 1, 64});
  call.args.v = contiguousTensor(call.args.v.ptr, DType::bf16, {1, 1, 1, 128});
  for (int64_t stride : {int64_t(0), int64_t(1), int64_t(-7), int64_t(1) << 62}) {
    CAPTURE(stride);
    call.args.k.stride[0] = call.args.k.stride[1] = call.args.k.stride[2] = stride;
    require(kernel.launch(nullptr, call.args));
    const TensorMapCall &encoded = *fakeCudaLastTensorMap();
    CHECK(encoded.dims[1] == 1);
    CHECK(encoded.dims[2] == 4);
    for (int i = 0; i < 4; ++i) {
      CHECK(encoded.strides[i] > 0);
      CHECK(encoded.strides[i] % 16 == 0);
      CHECK(encoded.strides[i] < 1024);
    }
  }
}

TEST_CASE("tensor maps of empty tensors are encoded and name memory that exists") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(
      device, residueRecord("empty", residueMap(Role::k, LaunchSymbol::seqlenK, strideOf(Role::k, StrideDim::batch)))));
  ForwardCall call;
  call.args.operand_count = 0;
  for (uintptr_t address : {uintptr_t(0), uintptr_t(0x12345)}) {
    call.args.k = contiguousTensor(reinterpret_cast<void *>(address), DType::bf16, {2, 0, 4, 64});
    call.args.v = contiguousTensor(reinterpret_cast<void *>(address), DType::bf16, {2, 0, 4, 128});
    call.args.k.stride[2] = -1;
    require(kernel.launch(nullptr, call.args));
    const TensorMapCall &encoded = *fakeCudaLastTensorMap();
    CHECK(encoded.address == call.args.out.ptr);
    CHECK(encoded.dims[1] == 1);
    CHECK(encoded.dims[3] == 4);
    CHECK(encoded.strides[2] % 16 == 0);
  }
}

TEST_CASE("a refused tensor map names the limit that it breaks") {
  startFake();
  Device device = require(Device::open(0));
  ForwardCall call;
  call.args.operand_count = 0;
  struct Case {
    void (*spoil)(TensorMapSpec &);
    const char *limit;
  };
  const Case cases[] = {
      {[](TensorMapSpec &map) { map.dims[1] = 0; }, ": dimension 1 must be 1 to 2^32"},
      {[](TensorMapSpec &map) { map.box[1] = 257; },
       ", box (64, 257, 1, 1, 1), steps (1, 1, 1, 1, 1): box size 1 must be 1 to 256"},
      {[](TensorMapSpec &map) { map.strideBytes[2] = 24; },
       ": the stride of dimension 3 must be a multiple of 16 bytes below 2^40"},
      {[](TensorMapSpec &map) { map.strideBytes[3] = int64_t(1) << 40; }, ": the stride of dimension 4 must be"},
      {[](TensorMapSpec &map) { map.offsetBytes = 8; }, ": the address must be a multiple of 16 and not null"},
  };
  for (const Case &bad : cases) {
    CAPTURE(bad.limit);
    TensorMapSpec map = residueMap(Role::k, LaunchSymbol::seqlenK, strideOf(Role::k, StrideDim::batch));
    bad.spoil(map);
    Status refused = require(Kernel::load(device, residueRecord(bad.limit, map))).launch(nullptr, call.args);
    CHECK(refused.message().find("launch: tensor map of k: cuTensorMapEncodeTiled failed") == 0);
    CHECK_MESSAGE(refused.message().find(bad.limit) != std::string::npos, refused.message());
  }
}
