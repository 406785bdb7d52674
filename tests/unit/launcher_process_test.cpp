// What a process without a compiler is given of a call: sizes, lengths and tensors, on the recording driver, which
// writes the parameters of the other process's launch to a file.
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Measure/LauncherProcess.h"
#include "device_fixture.h"
#include "runtime/Store/Store.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int64_t kHeads = 3, kRows = 5, kKeys = 7, kHeadDim = 64, kValueDim = 128;

/// A folder with a database whose only kernel serves the pattern "patterned" with this plan.
class Scene {
public:
  explicit Scene(const LaunchPlan &plan) : kind(*require(findKind(plan.serves.kind))) {
    startFake();
    std::filesystem::create_directories(folder);
    setenv("HEDDLE_FAKE_CUDA_PARAMS", (folder + "/params").c_str(), 1);
    KernelRecord record = forwardRecord("reads tensors");
    record.kind = kind.name;
    record.plan = plan.str();
    StoreOptions options;
    options.mode = StoreMode::readWrite;
    Store store = require(Store::open(folder + "/kernels.db", options));
    DeviceIdentity device;
    device.arch = record.kernelArch;
    Winner winner;
    static_cast<WinnerKey &>(winner) = WinnerKey(record, ProblemBucket(), device);
    winner.contentKey = record.contentKey;
    require(store.publish(record, winner));
    NameRecord name;
    name.name = "patterned";
    name.pattern = record.pattern;
    require(store.setName(name));
  }
  ~Scene() {
    unsetenv("HEDDLE_FAKE_CUDA_PARAMS");
    std::filesystem::remove_all(folder);
  }

  Result<LauncherAnswer> launch(const PatternFile &file, const ProblemShape &shape) const {
    LauncherCall call;
    call.program = HEDDLE_LAUNCH;
    call.database = folder + "/" + own;
    call.shipped = shipped;
    call.name = "patterned";
    call.kind = &kind;
    call.headDim = kHeadDim;
    call.valueDim = kValueDim;
    call.repetitions = 2;
    return launchElsewhere(file, shape, call);
  }

  template <class T> T slotAt(int64_t offset) const {
    std::ifstream file(folder + "/params", std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    REQUIRE(bytes.size() >= offset + sizeof(T));
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }

  const std::string &path() const { return folder; }

  std::string own = "kernels.db";
  std::vector<std::string> shipped;

private:
  const KindSpec &kind;
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("heddle-launcher-" + std::to_string(getpid()))).string();
};

ProblemShape shapeWith(const PatternFile &file, const std::vector<std::string> &sizes) {
  ProblemShape shape;
  shape.heads = shape.kvHeads = kHeads;
  shape.seqlenQ = kRows, shape.seqlenK = kKeys;
  shape.parameters = require(file.bindParameters(sizes));
  require(bindOperands(file, {{}, {}, OperandSources::Missing::make}, shape));
  return shape;
}

int filesLeft() {
  int count = 0;
  const std::string own = "heddle-" + std::to_string(getpid()) + "-";
  for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
    count += entry.path().filename().string().rfind(own, 0) == 0;
  return count;
}

} // namespace

TEST_CASE("tensors, their lengths and the sizes beside them reach the other process's launch") {
  auto file = require(PatternFile::load(HEDDLE_TEST_PATTERNS "/document_window.mlir", ""));
  const ProblemShape shape = shapeWith(*file, {"left=9"});
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  int64_t pointers[3], words[4];
  for (int i = 0; i < 3; ++i)
    pointers[i] = launch.appendPointer(PointerSource::operand(i));
  for (int i = 0; i < 4; ++i)
    words[i] = launch.appendI32(LaunchExpr::param(i));
  Scene scene(plan);
  LauncherAnswer answer = require(scene.launch(*file, shape));
  CHECK(answer.match == "untuned default");
  CHECK(answer.results.out.shape == std::vector<int64_t>{1, kRows, kHeads, kValueDim});
  CHECK(answer.results.lse.shape == std::vector<int64_t>{1, kHeads, kRows});
  for (int i = 0; i < 3; ++i) {
    CHECK(scene.slotAt<const void *>(pointers[i]) != nullptr);
    CHECK(scene.slotAt<int32_t>(words[i]) == shape.operands[i].shape[0]);
  }
  CHECK(scene.slotAt<const void *>(pointers[0]) != scene.slotAt<const void *>(pointers[1]));
  CHECK(scene.slotAt<int32_t>(words[3]) == 9);
  CHECK(filesLeft() == 0);
}

TEST_CASE("a tensor without a length has no word, and the bits of a number travel") {
  auto file = require(PatternFile::parse(
      "attn.pattern @p(%sinks: memref<?xf32>, %cap: f32 {attn.min = 1.0 : f32}) {\n %m = attn.full\n %s = attn.scaled\n"
      " %t = attn.softcap %s by %cap\n attn.softmax union(%m) of %t sink %sinks : memref<?xf32>\n}",
      "capped"));
  LaunchPlan plan{PlanService("forward")};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.block = 128;
  const int64_t sinks = launch.appendPointer(PointerSource::operand(0)), cap = launch.appendI32(LaunchExpr::param(1));
  Scene scene(plan);
  require(scene.launch(*file, shapeWith(*file, {"cap=2.5"})).status());
  CHECK(scene.slotAt<const void *>(sinks) != nullptr);
  CHECK(scene.slotAt<float>(cap) == 2.5f);
}

TEST_CASE("a shipped database serves where the user's own is missing, from the command line or the environment") {
  auto file = require(PatternFile::load(HEDDLE_TEST_PATTERNS "/full.mlir", ""));
  LaunchPlan plan{PlanService("forward")};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.block = 128;
  launch.appendPointer(Role::q);
  Scene scene(plan);
  const ProblemShape shape = shapeWith(*file, {});
  const std::string shipped = scene.path() + "/shipped.db";
  require(require(Store::open(scene.path() + "/kernels.db")).exportTo(shipped, {}).status());
  scene.own = "none.db";
  CHECK(scene.launch(*file, shape).status().code() == StatusCode::internal);
  scene.shipped = {scene.path() + "/nowhere.db"};
  CHECK(scene.launch(*file, shape).status().code() == StatusCode::internal);
  scene.shipped = {shipped};
  CHECK(require(scene.launch(*file, shape)).match == "untuned default");
  scene.shipped.clear();
  setenv("HEDDLE_SHIPPED_DB", (":" + shipped).c_str(), 1);
  CHECK(require(scene.launch(*file, shape)).match == "untuned default");
  unsetenv("HEDDLE_SHIPPED_DB");
  scene.own = "kernels.db";
  scene.shipped = {shipped};
  CHECK(require(scene.launch(*file, shape)).match == "untuned default");
}

TEST_CASE("a call of another kind: its own roles are read, written and answered") {
  auto file = require(PatternFile::load(HEDDLE_TEST_PATTERNS "/full.mlir", ""));
  LaunchPlan plan{PlanService("row_dot")};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.block = 128;
  const int64_t dOut = launch.appendPointer(Role::dOut), delta = launch.appendPointer(Role::delta);
  Scene scene(plan);
  LauncherAnswer answer = require(scene.launch(*file, shapeWith(*file, {})));
  CHECK(scene.slotAt<const void *>(dOut) != nullptr);
  CHECK(scene.slotAt<const void *>(delta) != scene.slotAt<const void *>(dOut));
  CHECK(answer.results.delta.shape == std::vector<int64_t>{1, kHeads, kRows});
  CHECK(answer.results.out.shape.empty());
}

TEST_CASE("a call that lacks a tensor fails, and leaves no files") {
  auto file = require(PatternFile::load(HEDDLE_TEST_PATTERNS "/document_window.mlir", ""));
  ProblemShape shape = shapeWith(*file, {});
  LaunchPlan plan{PlanService("forward")};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.block = 128;
  for (int i = 0; i < 3; ++i)
    launch.appendPointer(PointerSource::operand(i));
  launch.appendI32(LaunchExpr::param(3));
  Scene scene(plan);
  shape.operands[1] = {};
  Status status = scene.launch(*file, shape).status();
  CHECK(status.code() == StatusCode::internal);
  CHECK(status.message().find("failed (status 256)") != std::string::npos); // exit code 1: invalid arguments
  CHECK(filesLeft() == 0);
}
