// Launches that must agree bit by bit, on the recording driver, whose device memory is the host's: what a "kernel"
// writes is what a function writes there.
#include "support/Places.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Measure/DeviceProblem.h"
#include "device_fixture.h"

#include <cstring>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr uint16_t kHalf = 0x3f00, kQuarter = 0x3e80; // in bf16
constexpr int64_t kRows = 3, kHeads = 2, kDim = 128;  // of v and out

/// One problem and what a launch writes: all of out 0.5, all of lse 1.
struct Scene {
  Device device = require(Device::open(0));
  Kernel kernel = require(Kernel::load(device, forwardRecord()));
  std::unique_ptr<PatternFile> file = require(PatternFile::load(test::places().patterns + "/full.mlir", ""));
  AttentionInputs inputs = require(randomAttentionInputs({1, kRows, kRows, kHeads, kHeads, 64, kDim}, DType::bf16, 1));
  DeviceProblem problem = makeProblem();
  uint16_t *out = nullptr;
  float *lse = nullptr;
  RoleTensors host;

  Scene() {
    AttentionArgs args = require(problem.argumentsFor(kernel));
    out = static_cast<uint16_t *>(args.out.ptr);
    lse = args.lse;
  }

  DeviceProblem makeProblem() const {
    ProblemShape shape;
    shape.heads = shape.kvHeads = kHeads;
    shape.seqlenQ = shape.seqlenK = kRows;
    shape.parameters = {0, 0}; // as many as the plan of the record asks for
    return require(DeviceProblem::create(device, {*file, shape, inputs, 1}));
  }

  void write() const {
    std::fill(out, out + kRows * kHeads * kDim, kHalf);
    std::fill(lse, lse + kHeads * kRows, 1.0f);
  }
};

} // namespace

TEST_CASE("launches that agree are counted, and the tensors hold the result") {
  startFake();
  Scene scene;
  int launches = 0;
  auto launch = [&] {
    uint16_t poison = 0;
    std::memcpy(&poison, scene.out, sizeof poison);
    CHECK(poison == 0xffff);
    scene.write();
    ++launches;
    return Status();
  };
  require(repeatLaunch(scene.problem, launch, {5}, scene.host));
  CHECK(launches == 5);
  CHECK(scene.host.out.get(0) == 0.5f);
  CHECK(scene.host.lse.get(kHeads * kRows - 1) == 1.0f);
}

TEST_CASE("the launch, the element and both values of a difference are named") {
  startFake();
  Scene scene;
  int launches = 0;
  auto launch = [&] {
    scene.write();
    if (++launches == 4)
      scene.out[(2 * kHeads + 1) * kDim + 5] = scene.out[(2 * kHeads + 1) * kDim + 6] = kQuarter;
    return Status();
  };
  Status status = repeatLaunch(scene.problem, launch, {200}, scene.host);
  CHECK(launches == 4);
  CHECK(status.code() == StatusCode::invalidArgument);
  CHECK(status.message() == "launch 4 of 200 gave other bits than launch 1: out[0, 2, 1, 5] is 0.25 (bits 0x3e80), "
                            "was 0.5 (bits 0x3f00); 2 elements of out differ");
}

TEST_CASE("a zero of the other sign is another result") {
  startFake();
  Scene scene;
  int launches = 0;
  auto launch = [&] {
    scene.write();
    scene.lse[4] = ++launches == 2 ? -0.0f : 0.0f;
    return Status();
  };
  Status status = repeatLaunch(scene.problem, launch, {2}, scene.host);
  CHECK(status.message() == "launch 2 of 2 gave other bits than launch 1: lse[0, 1, 1] is -0 (bits 0x80000000), was 0 "
                            "(bits 0x00000000); 1 elements of lse differ");
}

TEST_CASE("what no launch wrote is found, and what later launches leave out") {
  startFake();
  Scene scene;
  uint16_t skipped = 0xffff;
  auto skipping = [&](int from) {
    return [&, from, launches = 0]() mutable {
      scene.write();
      if (++launches >= from)
        scene.out[kDim] = skipped;
      return Status();
    };
  };
  Status never = repeatLaunch(scene.problem, skipping(1), {3}, scene.host);
  CHECK(never.message() == "launch 1 never wrote out[0, 0, 1, 0]");
  Status later = repeatLaunch(scene.problem, skipping(3), {3}, scene.host);
  CHECK(later.message().find("launch 3 of 3 gave other bits than launch 1: out[0, 0, 1, 0] is ") == 0);
  skipped = 0x7fff; // a NaN that the kernel computed is a result
  CHECK(repeatLaunch(scene.problem, skipping(1), {3}, scene.host).isOk());
}

TEST_CASE("a launch that fails ends the repetition") {
  startFake();
  Scene scene;
  auto launch = [] { return Status::unavailable("no launch"); };
  CHECK(repeatLaunch(scene.problem, launch, {3}, scene.host).message() == "no launch");
}

TEST_CASE("sums in any order are told from faults") {
  startFake();
  Scene scene;
  int launches = 0, wrong = 0;
  auto launch = [&] {
    scene.write();
    scene.lse[4] += float(launches++);
    if (launches == wrong)
      scene.out[3] = kQuarter;
    return Status();
  };
  const Repetition repetition{5, {Role::lse}};
  Status status = repeatLaunch(scene.problem, launch, repetition, scene.host);
  CHECK(launches == 5);
  CHECK(status.message() == "launch 2 of 5 gave other bits than launch 1: lse[0, 1, 1] is 2 (bits 0x40000000), was 1 "
                            "(bits 0x3f800000); 1 elements of lse differ; this configuration adds up lse in the order "
                            "in which its blocks come, all launches gave the same bits of out");
  launches = 0, wrong = 4;
  status = repeatLaunch(scene.problem, launch, repetition, scene.host);
  CHECK(status.message().find("launch 4 of 5 gave other bits than launch 1: out[") == 0);
}
