// Candidates in a process of their own, which is heddle with the recording driver: what hangs, crashes or breaks its
// context is one trial with its reason, the process is started again, and the search goes on. The limit of an answer has
// passed when the process is known to hang: waits for sockets go through here.
#include "support/Places.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Measure/ChildProcess.h"
#include "compiler/Measure/MeasureMessages.h"
#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Session/TuneSession.h"
#include "device_fixture.h"
#include "scratch_fixture.h"

#include <filesystem>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

/// There while the other process is known to hang.
const std::string &hangFile() {
  static const ScratchFolder folder;
  static const std::string path = folder / "hangs";
  return path;
}

} // namespace

extern "C" int poll(pollfd *files, nfds_t count, int) {
  for (;;) {
    constexpr long kPauseNs = 10'000'000;
    const timespec pause = {0, kPauseNs};
    const int ready = int(syscall(SYS_ppoll, files, count, &pause, nullptr, 0));
    if (ready != 0 || std::filesystem::remove(hangFile()))
      return ready;
  }
}

namespace {

/// What the recording driver of the child is told; this process's own has read its orders before.
struct ChildDriver {
  explicit ChildDriver(const std::string &orders) {
    startFake();
    fake::fakeCudaSetArch(80);
    setenv("HEDDLE_FAKE_CUDA_ARCH", "80", 1); // whose kernels have as many threads as the recording driver launches
    setenv("HEDDLE_FAKE_CUDA_FAIL", orders.c_str(), 1);
    setenv("HEDDLE_FAKE_CUDA_HANGS", hangFile().c_str(), 1);
  }
  ~ChildDriver() { unsetenv("HEDDLE_FAKE_CUDA_FAIL"); }
};

std::unique_ptr<PatternFile> patternFile(const std::string &name) {
  return require(PatternFile::load(test::places().patterns + "/" + name));
}

/// Of a pattern with two sizes, as the kernel below takes them.
constexpr const char *kPattern = "longformer.mlir";

MeasureSetup smallSetup() {
  MeasureSetup setup;
  setup.shape.parameters = require(patternFile(kPattern)->bindParameters({}));
  setup.shape.seqlenQ = setup.shape.seqlenK = 128;
  setup.verifiedRows = 1;
  setup.launchLimitSeconds = 0.2;
  setup.answerLimitSeconds = 1;
  return setup;
}

std::unique_ptr<KernelMeasurer> measurerOf(const PatternFile &file, const MeasureSetup &setup) {
  return require(measureElsewhere(test::places().heddle, file, 0, setup));
}

KernelRecord smallKernel() {
  KernelRecord record = forwardRecord();
  record.headDim = record.valueDim = 64;
  record.kernelArch = "sm_80";
  return record;
}

std::string failureText(const tuner::Verification &verification) {
  return verification.failure
             ? std::string(tuner::outcomeName(verification.failure->outcome)) + ": " + verification.failure->message
             : "none";
}

} // namespace

TEST_CASE("messages keep every field, bytes that are no text too") {
  MeasureTask task;
  task.setup = smallSetup();
  task.setup.shape = {2, 6, 3, 5, 7, 11, 13, {4, -5}, {}};
  task.setup.elements = CallElements(DType::fp16, DType::fp32);
  task.setup.seed = ~uint64_t(0);
  task.setup.kind = {KindBase::backward, Adds::all, true, {0, 3}, true};
  task.setup.forward = smallKernel();
  task.setup.served = {{KeyPlaces::lists, 16}, {5, 70}};
  task.setup.scale = 0.25f;
  task.pattern = "text";
  task.operandFile = "/tmp/x";
  task.operandCount = 2;
  task.device = 3;
  MeasureTask read = require(decodeTask(encode(task)));
  CHECK(read.setup.shape.batch == 2);
  CHECK(read.setup.shape.kvHeads == 3);
  CHECK(read.setup.shape.seqlenK == 7);
  CHECK(read.setup.shape.kOrigin == 13);
  CHECK(read.setup.served.key() == "keys:5-70 lists:16");
  CHECK(read.setup.shape.parameters == std::vector<int64_t>{4, -5});
  CHECK(read.setup.elements.v == DType::fp16);
  CHECK(read.setup.elements.out == DType::fp32);
  CHECK(read.setup.seed == ~uint64_t(0));
  CHECK(read.setup.kind == task.setup.kind);
  CHECK(read.setup.forward.cubin == task.setup.forward.cubin);
  CHECK(read.setup.scale == 0.25f);
  CHECK(read.operandFile == "/tmp/x");
  CHECK(read.device == 3);

  MeasureQuestion question{MeasureQuestion::What::sample, 9};
  question.hasRecord = true;
  question.record = smallKernel();
  question.record.cubin = std::string("\xff\x00\x80", 3);
  MeasureQuestion asked = require(decodeQuestion(encode(question)));
  CHECK(asked.candidate == 9);
  CHECK(asked.record.cubin == question.record.cubin);
  CHECK(asked.record.plan == question.record.plan);

  MeasureAnswer answer;
  answer.number = 41.5;
  answer.smClockMhz = 1755;
  answer.powerWatts = 612.5;
  answer.failure = tuner::Failure{tuner::Outcome::wrong, "error"};
  answer.status = Status::unavailable("no GPU");
  MeasureAnswer told = require(decodeAnswer(encode(answer)));
  CHECK(told.number == 41.5);
  CHECK(told.smClockMhz == 1755);
  CHECK(told.powerWatts == 612.5);
  CHECK(told.failure->outcome == tuner::Outcome::wrong);
  CHECK(told.status.str() == answer.status.str());
  CHECK(decodeAnswer("what is this").status().code() == StatusCode::corrupt);
}

TEST_CASE("a child that does not answer, and one that has ended, are told apart") {
  ChildProcess silent = require(ChildProcess::start("/bin/sh", {"-c", "touch " + hangFile() + "; exec sleep 86400"}));
  CHECK(silent.ask("hello", 0.05).status().code() == StatusCode::unavailable);
  ChildProcess ended = require(ChildProcess::start("/bin/sh", {"-c", "exit 7"}));
  CHECK(ended.receive(10).status().message() == "its process ended with exit code 7");
  ChildProcess killed = require(ChildProcess::start("/bin/sh", {"-c", "kill -SEGV $$"}));
  CHECK(killed.receive(10).status().message() == "its process ended with signal 11 (Segmentation fault)");
  CHECK(ChildProcess::start("/no/such/program", {}).status().message().find("cannot start '/no/such/program'") == 0);
}

TEST_CASE("a kernel is verified and timed in the other process") {
  ChildDriver driver("");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  // the recording driver computes nothing
  CHECK(failureText(measurer->verify(1, smallKernel())).find("wrong: error") == 0);
  CHECK(!measurer->sample(1, smallKernel()).failure);
  measurer->release(1);
  CHECK(!measurer->sample(1, smallKernel()).failure); // loaded again
  CHECK(fake::fakeCudaCalls("cuLaunchKernel") + fake::fakeCudaCalls("cuGraphLaunch") == 0);
}

TEST_CASE("a call that fails is a reason, and the process stays while its context works") {
  ChildDriver driver("cuGraphLaunch=701,cuLaunchKernel=701");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  CHECK(failureText(measurer->verify(1, smallKernel())).find("launch_failed: ") == 0);
  require(measurer->recover());
  CHECK(failureText(measurer->verify(2, smallKernel())).find("cuLaunchKernel") != std::string::npos);
}

TEST_CASE("a process that a kernel takes down is started again") {
  ChildDriver driver("cuGraphLaunch=crash@1");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  CHECK(failureText(measurer->verify(1, smallKernel())).find("wrong: ") == 0);
  CHECK(failureText(measurer->verify(2, smallKernel())) ==
        "launch_failed: its process ended with signal 11 (Segmentation fault)");
  CHECK(measurer->sample(1, smallKernel()).failure->message == "the process that measures is gone");
  require(measurer->recover());
  CHECK(!measurer->sample(1, smallKernel()).failure); // told again what candidate 1 is
}

TEST_CASE("a process that does not answer is killed and started again") {
  ChildDriver driver("cuGraphLaunch=hang@1");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  CHECK(failureText(measurer->verify(1, smallKernel())).find("wrong: ") == 0);
  CHECK(failureText(measurer->verify(2, smallKernel())).find("timed_out: ") == 0);
  require(measurer->recover());
  CHECK(failureText(measurer->verify(3, smallKernel())).find("wrong: ") == 0);
}

TEST_CASE("letting go of a kernel waits for nobody, not for a process that hangs") {
  ChildDriver driver("cuModuleUnload=hang");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  CHECK(!measurer->sample(1, smallKernel()).failure);
  measurer->release(1);
  // Had it asked the process, this would be gone by now.
  CHECK(failureText(measurer->verify(2, smallKernel())).find("timed_out: ") == 0);
}

TEST_CASE("a launch that never ends costs its process") {
  ChildDriver driver("cuEventQuery=600@1");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  CHECK(failureText(measurer->verify(1, smallKernel())).find("wrong: ") == 0);
  CHECK(failureText(measurer->verify(2, smallKernel())) == "timed_out: the launch did not end within 0.2 s");
  require(measurer->recover());
  CHECK(failureText(measurer->verify(3, smallKernel())).find("wrong: ") == 0);
}

TEST_CASE("inputs that a kernel wrote into are noticed, and fresh ones had again") {
  ChildDriver driver("cuGraphLaunch=scribble@1");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  require(measurer->ready());
  measurer->verify(1, smallKernel());
  require(measurer->checkInputs());
  measurer->verify(2, smallKernel());
  CHECK(measurer->checkInputs().message() == "a kernel wrote into 'q', which it may only read");
  require(measurer->renew());
  require(measurer->checkInputs());
}

TEST_CASE("what keeps the process from measuring is no candidate's fault") {
  ChildDriver driver("cuMemAlloc_v2=2@3");
  auto file = patternFile(kPattern);
  auto measurer = measurerOf(*file, smallSetup());
  Status status = measurer->ready();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message().find("memory") != std::string::npos);
}

TEST_CASE("tensors reach the other process") {
  ChildDriver driver("");
  auto file = patternFile("document.mlir");
  MeasureSetup setup = smallSetup();
  setup.shape.parameters = require(file->bindParameters({}));
  OperandSources sources;
  sources.missing = OperandSources::Missing::make;
  require(bindOperands(*file, sources, setup.shape));
  require(measurerOf(*file, setup)->ready());
}

TEST_CASE("a search survives kernels that take their process down, and its database has their reasons") {
  if (!NvrtcLibrary::shared()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  ChildDriver driver("cuGraphLaunch=crash@1");
  const ScratchFolder folder;
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  Store store = require(Store::open(folder / "measure.db", options));
  auto file = patternFile(kPattern);
  TuneRequest request;
  static_cast<MeasureSetup &>(request) = smallSetup();
  request.measureProgram = test::places().heddle;
  request.strategy = "exhaustive:limit=3";
  request.options.budgetSeconds = 120;
  request.options.workers = 1;
  TuneOutcome outcome = require(tune(*file, request, require(Device::open(0)), store));
  CHECK(outcome.search.measuredNow >= 3);
  CHECK(outcome.search.outcomes[size_t(tuner::Outcome::launchFailed)] >= 1);
  CHECK(outcome.search.outcomes[size_t(tuner::Outcome::wrong)] >= 1);
  CHECK(!outcome.record);
}
