// What the two launches of a key split are given, as the recording driver sees it: the keys before and from the cut
// at their own positions, and the results of the first as the carry of the second.
#include "compiler/Measure/KeySplit.h"
#include "device_fixture.h"

#include <cstring>

using namespace heddle;
using namespace heddle::test;

namespace {

/// The parameter block of the latest launch.
ForwardParams lastParams() {
  const fake::Launch *launch = fake::fakeCudaLastLaunch();
  REQUIRE(launch);
  ForwardParams params;
  std::memcpy(&params, launch->params, sizeof params);
  return params;
}

KernelRecord floatRecord() {
  KernelRecord record = forwardRecord("kernel-fp32");
  record.kind = KindText{Kind(), DType::fp32}.str();
  return record;
}

template <class T> const T *behind(const void *base, int64_t elements) {
  return static_cast<const T *>(base) + elements;
}

} // namespace

TEST_CASE("a slice of the keys keeps strides and moves addresses and positions") {
  ForwardCall call;
  call.args.k_origin = 7;
  AttentionArgs slice = overKeys(call.args, 1000, 1600);
  CHECK(slice.k.ptr == behind<uint16_t>(call.args.k.ptr, 1000 * 4 * 64));
  CHECK(slice.v.ptr == behind<uint16_t>(call.args.v.ptr, 1000 * 4 * 128));
  CHECK(slice.k.size[1] == 600);
  CHECK(slice.v.size[1] == 600);
  CHECK(slice.k.stride[0] == 3000 * 4 * 64);
  CHECK(slice.k_origin == 1007);
  CHECK(slice.q.size[1] == 1000);
}

TEST_CASE("the second launch continues from what the first wrote") {
  startFake();
  Device device = require(Device::open(0));
  Kernel first = require(Kernel::load(device, floatRecord()));
  Kernel second = require(Kernel::load(device, forwardRecord()));
  ForwardCall call;
  KeySplit split = require(KeySplit::create(first, second, call.args, 1024));
  CHECK(fake::fakeCudaCalls("cuLaunchKernel") == 0);

  fake::fakeCudaFail("cuGraphLaunch", 719, 1); // the second launch fails: what is recorded is the first
  fake::fakeCudaFail("cuLaunchKernel", 719, 0);
  CHECK(!split.launch(nullptr).isOk());
  ForwardParams head = lastParams();
  fake::fakeCudaReset();
  require(split.launch(nullptr));
  CHECK(fake::fakeCudaCalls("cuGraphLaunch") == 2);
  ForwardParams tail = lastParams();

  CHECK(head.seqlenK == 1024);
  CHECK(head.kOrigin == 0);
  CHECK(head.k == call.args.k.ptr);
  CHECK(head.carryOut == nullptr);
  CHECK(head.carryLse == nullptr);
  CHECK(head.out != call.args.out.ptr);
  CHECK(head.outStride[1] == 8 * 128);

  CHECK(tail.seqlenK == 3000 - 1024);
  CHECK(tail.kOrigin == 1024);
  CHECK(tail.k == behind<uint16_t>(call.args.k.ptr, 1024 * 4 * 64));
  CHECK(tail.v == behind<uint16_t>(call.args.v.ptr, 1024 * 4 * 128));
  CHECK(tail.carryOut == head.out);
  CHECK(tail.carryLse == head.lse);
  CHECK(tail.out == call.args.out.ptr);
  CHECK(tail.lse == call.args.lse);
  CHECK(tail.q == head.q);
}

TEST_CASE("a first kernel that rounds its results is refused") {
  startFake();
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  ForwardCall call;
  Result<KeySplit> split = KeySplit::create(kernel, kernel, call.args, 1024);
  REQUIRE(!split.isOk());
  CHECK(split.status().message().find("out: dtype: expected bf16 as q, got fp32") != std::string::npos);
}
