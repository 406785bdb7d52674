// The side of MeasureProcess.h that runs kernels.
#include "compiler/Measure/ChildProcess.h"
#include "compiler/Measure/MeasureMessages.h"
#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Measure/OperandFile.h"

namespace heddle {
namespace {

/// A GPU, a pattern, and the candidates of one search.
class Server {
public:
  Status open(const MeasureTask &task) {
    MeasureSetup setup = task.setup;
    setup.shape.operands.resize(task.operandCount);
    if (!task.operandFile.empty()) {
      HEDDLE_ASSIGN(setup.shape.operands, readOperands(task.operandFile, task.operandCount));
    }
    HEDDLE_ASSIGN(file, PatternFile::parse(task.pattern, "pattern"));
    HEDDLE_ASSIGN(Device device, Device::open(static_cast<int>(task.device)));
    measurer = measureHere(device, *file, setup);
    return measurer->ready();
  }

  MeasureAnswer answer(const MeasureQuestion &question) {
    for (int64_t candidate : question.released) {
      measurer->release(candidate);
      records.erase(candidate);
    }
    if (question.hasRecord)
      records[question.candidate] = question.record;
    const KernelRecord &record = records[question.candidate];
    MeasureAnswer answer;
    switch (question.what) {
    case MeasureQuestion::What::ready:
      break;
    case MeasureQuestion::What::verify: {
      const tuner::Verification verification = measurer->verify(question.candidate, record);
      answer.failure = verification.failure;
      answer.number = verification.maxError;
      break;
    }
    case MeasureQuestion::What::sample: {
      const tuner::Sample sample = measurer->sample(question.candidate, record);
      answer.failure = sample.failure;
      answer.number = sample.us;
      answer.smClockMhz = sample.smClockMhz;
      answer.powerWatts = sample.powerWatts;
      break;
    }
    case MeasureQuestion::What::checkInputs:
      answer.status = measurer->checkInputs();
      break;
    case MeasureQuestion::What::recover:
      answer.status = measurer->recover();
      break;
    }
    return answer;
  }

private:
  std::unique_ptr<PatternFile> file;
  std::unique_ptr<KernelMeasurer> measurer;
  std::map<int64_t, KernelRecord> records;
};

} // namespace

Status serveMeasurements(int descriptor) {
  ChildProcess::endWithParent();
  MessageSocket socket(descriptor);
  HEDDLE_ASSIGN(std::string message, socket.receive());
  HEDDLE_ASSIGN(MeasureTask task, decodeTask(message));
  Server server;
  const Status opened = server.open(task);
  while (true) {
    Result<std::string> next = socket.receive();
    if (!next)
      return Status(); // the search has ended
    HEDDLE_ASSIGN(MeasureQuestion question, decodeQuestion(*next));
    MeasureAnswer answer;
    answer.status = opened;
    if (opened.isOk())
      answer = server.answer(question);
    HEDDLE_TRY(socket.send(encode(answer)));
  }
}

} // namespace heddle
