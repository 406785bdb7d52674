// What a launch is given of the tensors that a pattern reads, on the recording driver, whose device memory is the
// host's.
#include "support/Places.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Measure/KernelMeasurer.h"
#include "device_fixture.h"

#include <cstring>

using namespace heddle;
using namespace heddle::test;

namespace {

template <class T> T slotAt(int64_t offset) {
  const fake::Launch *launch = fake::fakeCudaLastLaunch();
  REQUIRE(launch);
  T value;
  std::memcpy(&value, launch->params + offset, sizeof value);
  return value;
}

AttentionInputs someInputs() { return require(randomAttentionInputs({1, 5, 7, 3, 3, 64, 128}, DType::bf16, 1)); }

ProblemShape shapeWithTable(PatternFile &file) {
  ProblemShape shape;
  shape.heads = shape.kvHeads = 3;
  shape.seqlenQ = 5, shape.seqlenK = 7;
  shape.parameters = require(file.bindParameters({"reach=9"}));
  require(bindOperands(file, {{}, {}, OperandSources::Missing::make}, shape));
  return shape;
}

} // namespace

TEST_CASE("a tensor travels to device memory, its address and its length to the kernel") {
  startFake();
  Device device = require(Device::open(0));
  KernelRecord record = forwardRecord("reads a table");
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  const int64_t pointer = launch.appendPointer(PointerSource::operand(0));
  const int64_t length = launch.appendI32(LaunchExpr::param(0)), reach = launch.appendI32(LaunchExpr::param(1));
  record.plan = plan.str();
  Kernel kernel = require(Kernel::load(device, record));

  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  AttentionInputs inputs = someInputs();
  ProblemShape shape = shapeWithTable(*file);
  DeviceProblem problem = require(DeviceProblem::create(device, {*file, shape, inputs, 1}));
  require(kernel.launch(nullptr, require(problem.argumentsFor(kernel))));

  const OperandTensor &table = shape.operands[0];
  CHECK(slotAt<int32_t>(length) == table.shape[1]);
  CHECK(slotAt<int32_t>(reach) == 9);
  const void *copy = slotAt<const void *>(pointer);
  REQUIRE(copy != nullptr);
  CHECK(copy != table.address());
  CHECK(std::memcmp(copy, table.data->data(), table.data->size()) == 0);

  AttentionArgs args = require(problem.argumentsFor(kernel));
  std::vector<heddle_operand> operands(args.operands, args.operands + args.operand_count);
  for (heddle_operand &operand : operands)
    if (operand.kind == HEDDLE_OPERAND_POINTER)
      operand.value.ptr = nullptr;
  args.operands = operands.data();
  CHECK(kernel.launch(nullptr, args).message().find("operands: pointer number 0: expected device memory, got null") !=
        std::string::npos);
}

TEST_CASE("a prepared launch keeps its workspace when another kernel asks for a larger one") {
  startFake();
  Device device = require(Device::open(0));
  auto kernelWith = [&](const char *name, int64_t bytes) {
    KernelRecord record = forwardRecord(name);
    LaunchPlan plan = emptyPlan();
    KernelLaunch &launch = plan.launches.front();
    launch.appendPointer(PointerSource::operand(0));
    launch.appendI32(LaunchExpr::param(0)), launch.appendI32(LaunchExpr::param(1));
    const PointerSource region = plan.appendRegion("room", bytes);
    launch.clears.push_back({region, 0, bytes / 4, 0});
    record.plan = plan.str();
    return require(Kernel::load(device, record));
  };
  Kernel small = kernelWith("needs a little", 4096), large = kernelWith("needs more", 1 << 20);
  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  AttentionInputs inputs = someInputs();
  ProblemShape shape = shapeWithTable(*file);
  DeviceProblem problem = require(DeviceProblem::create(device, {*file, shape, inputs, 1}));
  const AttentionArgs first = require(problem.argumentsFor(small));
  require(large.launch(nullptr, require(problem.argumentsFor(large))));
  // The driver refuses to clear, and the runtime to use, memory that was freed.
  require(small.launch(nullptr, first));
  CHECK(require(problem.argumentsFor(small)).workspace == require(problem.argumentsFor(large)).workspace);
}

TEST_CASE("what a kernel writes beside its results, its workspace and into its inputs is noticed") {
  startFake();
  Device device = require(Device::open(0));
  KernelRecord record = forwardRecord("strays");
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  launch.appendPointer(PointerSource::operand(0));
  launch.appendI32(LaunchExpr::param(0)), launch.appendI32(LaunchExpr::param(1));
  plan.appendRegion("room", 4096);
  record.plan = plan.str();
  Kernel kernel = require(Kernel::load(device, record));
  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  AttentionInputs inputs = someInputs();
  ProblemShape shape = shapeWithTable(*file);
  DeviceProblem problem = require(DeviceProblem::create(device, {*file, shape, inputs, 1}));
  const AttentionArgs args = require(problem.argumentsFor(kernel));
  const auto nothing = oracle::referenceOf(definitionOf({*file, shape, inputs, 1}), 0);
  auto byteAt = [](const void *base, int64_t offset) -> uint8_t & {
    return const_cast<uint8_t *>(static_cast<const uint8_t *>(base))[offset];
  };
  const int64_t outBytes = 5 * 3 * 128 * 2, lseBytes = 5 * 3 * 4;
  struct {
    uint8_t &byte;
    const char *said;
  } strays[] = {{byteAt(args.out.ptr, -2), "outside of 'out': 2 bytes before it"},
                {byteAt(args.out.ptr, outBytes), "outside of 'out': 0 bytes behind it"},
                {byteAt(args.lse, lseBytes + 7), "outside of 'lse': 7 bytes behind it"},
                {byteAt(args.workspace, args.workspace_bytes), "outside of 'workspace': 0 bytes behind it"}};
  for (auto &stray : strays) {
    require(problem.compare(*nothing));
    const uint8_t before = stray.byte;
    stray.byte = 0;
    CHECK(problem.compare(*nothing).status().message().find(stray.said) != std::string::npos);
    stray.byte = before;
  }
  require(problem.checkInputs());
  std::vector<const void *> read = {args.q.ptr, args.k.ptr, args.v.ptr};
  for (size_t i = 0; i < args.operand_count; ++i)
    if (args.operands[i].kind == HEDDLE_OPERAND_POINTER)
      read.push_back(args.operands[i].value.ptr);
  CHECK(read.size() == 4);
  for (const void *input : read) {
    byteAt(input, 3) ^= 1;
    CHECK(problem.checkInputs().message().find("a kernel wrote into '") == 0);
    byteAt(input, 3) ^= 1;
  }
  require(problem.checkInputs());
}

TEST_CASE("gradients are compared by the roles of their kind, and what a forward call writes is asked for once") {
  startFake();
  Device device = require(Device::open(0));
  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  const ProblemShape shape = shapeWithTable(*file);
  const Kind kind = {KindBase::backward};
  AttentionInputs inputs = require(randomAttentionInputs({1, 5, 7, 3, 3, 64, 128}, DType::bf16, 1, kind));
  inputs.dOut = HostTensor::zeros(DType::bf16, inputs.dOut.shape); // so that all gradients are 0
  int calls = 0;
  const auto forward = [&](const AttentionInputs &given) -> Result<RoleTensors> {
    ++calls;
    CHECK(given.kind == Kind());
    return emptyResultsOf(given.kind, given.sizes, CallElements(DType::bf16));
  };
  CHECK(missingOfForward(inputs).size() == 2);
  require(addFromForward(inputs, forward));
  require(addFromForward(inputs, forward));
  CHECK(calls == 1);
  CHECK(inputs.kind == kind);

  KernelRecord record = forwardRecord("gradients");
  record.kind = "backward";
  LaunchPlan plan{PlanService(Kind{KindBase::backward})};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid = {1, 1, 1};
  launch.block = 128;
  for (Role role : {Role::out, Role::lse, Role::dQ, Role::dK, Role::dV})
    launch.appendPointer(role);
  launch.appendPointer(PointerSource::operand(0));
  launch.appendI32(LaunchExpr::param(0)), launch.appendI32(LaunchExpr::param(1));
  record.plan = plan.str();
  Kernel kernel = require(Kernel::load(device, record));
  const DeviceCall call{*file, shape, inputs, 1};
  const auto reference = oracle::referenceOf(definitionOf(call), 1000);
  DeviceProblem problem = require(DeviceProblem::create(device, call));
  const AttentionArgs args = require(problem.argumentsFor(kernel));
  require(kernel.launch(nullptr, args));
  CHECK_FALSE(require(problem.compare(*reference)).isOk()); // nobody wrote anything

  std::memset(args.d_q.ptr, 0, 5 * 3 * 64 * 2);
  std::memset(args.d_k.ptr, 0, 7 * 3 * 64 * 2);
  std::memset(args.d_v.ptr, 0, 7 * 3 * 128 * 2);
  const oracle::KindReport right = require(problem.compare(*reference));
  CHECK(right.isOk());
  CHECK(right.rowsChecked == 5 * 3);
  CHECK(right.keysChecked == 7 * 3);
  const uint16_t half = 0x3f00;
  std::memcpy(static_cast<uint16_t *>(args.d_k.ptr) + (2 * 3 + 1) * 64 + 5, &half, sizeof half);
  const oracle::KindReport wrong = require(problem.compare(*reference));
  CHECK_FALSE(wrong.isOk());
  CHECK(wrong.worst().role == Role::dK);
  CHECK(wrong.worst().worst.row == 2);
  CHECK(wrong.worst().worst.head == 1);
}

TEST_CASE("what calls add to is before each of them what the inputs say") {
  startFake();
  Device device = require(Device::open(0));
  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  const ProblemShape shape = shapeWithTable(*file);
  const Kind adding = {KindBase::backward, Adds::all};
  AttentionInputs inputs = require(randomAttentionInputs({1, 5, 7, 3, 3, 64, 64}, DType::bf16, 1, adding));
  inputs.dOut = HostTensor::zeros(DType::bf16, inputs.dOut.shape); // so that nothing is added
  require(addFromForward(inputs, [&](const AttentionInputs &given) -> Result<RoleTensors> {
    return emptyResultsOf(given.kind, given.sizes, CallElements(DType::bf16));
  }));
  const DeviceCall call{*file, shape, inputs, 1};
  const auto reference = oracle::referenceOf(definitionOf(call), 1000);
  DeviceProblem problem = require(DeviceProblem::create(device, call));
  CHECK(problem.addsToResults());
  CHECK(require(problem.compare(*reference)).isOk());
  RoleTensors results;
  require(problem.download(results));
  CHECK(results.dQ.dtype == DType::fp32);
  CHECK(results.dQ.data == inputs.dQ.data);
  inputs.dQ.set(3, 100);
  CHECK_FALSE(oracle::verifyCall(definitionOf(call), results, 1000).isOk());
  require(problem.poison());
  CHECK(require(problem.compare(*reference)).isOk());
}

TEST_CASE("gradients of arguments are compared, of calls with too many pairs on a shorter one") {
  startFake();
  Device device = require(Device::open(0));
  auto file = require(PatternFile::load(test::places().patterns + "/relative_bias.mlir", ""));
  auto recordOf = [](const char *kind, std::initializer_list<PointerSource> pointers) {
    KernelRecord record = forwardRecord(kind);
    record.kind = kind, record.headDim = record.valueDim = 8;
    LaunchPlan plan{PlanService(Kind::parse(kind).take())};
    plan.serves.qOrigin = QOriginRule::start;
    KernelLaunch &launch = plan.launches.emplace_back();
    launch.grid = {1, 1, 1};
    launch.block = 128;
    for (const PointerSource &pointer : pointers)
      launch.appendPointer(pointer);
    launch.appendI32(LaunchExpr::param(0)), launch.appendI32(LaunchExpr::param(1));
    record.plan = plan.str();
    return record;
  };
  const KernelRecord record = recordOf("backward_of_0", {PointerSource::operand(0), PointerSource::gradient(0)});
  for (const int64_t length : {100, 4096}) {
    CAPTURE(length);
    MeasureSetup setup;
    setup.kind = {KindBase::backward, Adds::none, false, {0}};
    setup.forward = recordOf("forward", {PointerSource::operand(0)});
    setup.headDim = setup.valueDim = 8;
    setup.verifiedRows = 0; // nobody writes anything
    setup.shape.seqlenQ = setup.shape.seqlenK = length;
    setup.shape.parameters = require(file->bindParameters({"reach=9"}));
    require(bindOperands(*file, {{}, {}, OperandSources::Missing::make}, setup.shape));
    const std::unique_ptr<KernelMeasurer> measurer = measureHere(device, *file, setup);
    require(measurer->ready());
    const tuner::Verification found = measurer->verify(1, record);
    REQUIRE(found.failure);
    CHECK(found.failure->outcome == tuner::Outcome::wrong);
    const std::string words = found.failure->message;
    CHECK_MESSAGE(words.find("of d_table inf, allowed ") != std::string::npos, words);
    CHECK((words.find("on a shorter call: ") == 0) == (length == 4096));
  }
}
