#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Measure/ChildProcess.h"
#include "compiler/Measure/MeasureMessages.h"
#include "compiler/Measure/OperandFile.h"

#include <set>

namespace heddle {
namespace {

using What = MeasureQuestion::What;

class ElsewhereMeasurer : public KernelMeasurer {
public:
  ElsewhereMeasurer(std::string program, MeasureTask task, double answerLimitSeconds,
                    std::unique_ptr<ScratchFile> operands)
      : program(std::move(program)), task(std::move(task)), operands(std::move(operands)),
        answerLimit(answerLimitSeconds + 2 * this->task.setup.launchLimitSeconds) {}

  Status start() {
    HEDDLE_ASSIGN(ChildProcess started, ChildProcess::start(program, {kMeasureVerb}));
    child.emplace(std::move(started));
    HEDDLE_TRY(child->send(encode(task)));
    return child->send(encode(MeasureQuestion{What::ready}));
  }

  Status ready() override {
    if (isReady)
      return Status();
    if (!child)
      HEDDLE_TRY(start());
    HEDDLE_ASSIGN(std::string message, child->receive(kStartSeconds));
    HEDDLE_ASSIGN(MeasureAnswer answer, decodeAnswer(message));
    HEDDLE_TRY(answer.status);
    isReady = true;
    return Status();
  }

  tuner::Verification verify(int64_t candidate, const KernelRecord &record) override {
    MeasureAnswer answer = ask(What::verify, candidate, record);
    return {answer.failure, answer.number};
  }

  tuner::Sample sample(int64_t candidate, const KernelRecord &record) override {
    MeasureAnswer answer = ask(What::sample, candidate, record);
    return {answer.failure, answer.number, answer.smClockMhz, answer.powerWatts};
  }

  void release(int64_t candidate) override {
    if (told.erase(candidate))
      released.push_back(candidate);
  }

  Status recover() override {
    Result<MeasureAnswer> answer = exchange(MeasureQuestion{What::recover});
    if (answer && answer->status.isOk())
      return Status();
    return renew();
  }

  Status checkInputs() override {
    HEDDLE_ASSIGN(MeasureAnswer answer, exchange(MeasureQuestion{What::checkInputs}));
    return answer.status;
  }

  Status renew() override {
    stop();
    return ready();
  }

private:
  static constexpr double kStartSeconds = 600; ///< inputs of a large problem are drawn and copied meanwhile

  void stop() {
    child.reset();
    isReady = false;
    told.clear();
    released.clear();
  }

  MeasureAnswer ask(What what, int64_t candidate, const KernelRecord &record) {
    MeasureQuestion question{what, candidate};
    question.hasRecord = !told.count(candidate);
    if (question.hasRecord)
      question.record = record;
    Result<MeasureAnswer> answer = exchange(question);
    if (!answer)
      return failed(answer.status());
    if (question.hasRecord)
      told.insert(candidate);
    return *answer;
  }

  Result<MeasureAnswer> exchange(MeasureQuestion question) {
    if (!child)
      return Status::io("the process that measures is gone");
    question.released.swap(released);
    HEDDLE_ASSIGN(std::string message, child->ask(encode(question), answerLimit));
    return decodeAnswer(message);
  }

  /// The process hangs, or is gone; either way it is not asked again.
  MeasureAnswer failed(const Status &status) {
    const bool hangs = status.code() == StatusCode::unavailable;
    stop();
    MeasureAnswer answer;
    answer.failure = tuner::Failure{hangs ? tuner::Outcome::timedOut : tuner::Outcome::launchFailed, status.message()};
    return answer;
  }

  std::string program;
  MeasureTask task;
  std::unique_ptr<ScratchFile> operands; ///< where the task says; or null
  double answerLimit;
  std::optional<ChildProcess> child;
  bool isReady = false;
  std::set<int64_t> told;        ///< candidates that the child has the record of
  std::vector<int64_t> released; ///< not yet told
};

} // namespace

Result<std::unique_ptr<KernelMeasurer>> measureElsewhere(const std::string &program, const PatternFile &file,
                                                         int ordinal, const MeasureSetup &setup) {
  MeasureTask task;
  task.setup = setup;
  task.setup.shape.operands.clear();
  task.device = ordinal;
  task.pattern = file.text();
  task.operandCount = static_cast<int64_t>(setup.shape.operands.size());
  auto operands = std::make_unique<ScratchFile>("operands");
  HEDDLE_ASSIGN(bool hasTensors, writeOperands(operands->path, setup.shape.operands));
  if (hasTensors)
    task.operandFile = operands->path;
  auto measurer =
      std::make_unique<ElsewhereMeasurer>(program, std::move(task), setup.answerLimitSeconds, std::move(operands));
  HEDDLE_TRY(measurer->start());
  return std::unique_ptr<KernelMeasurer>(std::move(measurer));
}

} // namespace heddle
