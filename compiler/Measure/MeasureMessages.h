// Owns the form of the messages between a search and the process that measures for it: MessagePack, each a map. Both
// ends are the same program, so the form has no versions.
#pragma once

#include "compiler/Measure/KernelMeasurer.h"

namespace heddle {

/// The first message: the call, and the pattern as text. Tensors are in a file of OperandFile.h.
struct MeasureTask {
  MeasureSetup setup; ///< without operands
  int64_t device = 0; ///< ordinal
  std::string pattern;
  std::string operandFile; ///< empty: no tensors
  int64_t operandCount = 0;
};

/// Every further one, each answered by one MeasureAnswer.
struct MeasureQuestion {
  enum class What : int { ready, verify, sample, checkInputs, recover } what = What::ready;
  int64_t candidate = 0;
  std::vector<int64_t> released = {}; ///< candidates that were let go of since the question before; let go of first
  KernelRecord record = {};           ///< of a candidate that the process has not been told yet
  bool hasRecord = false;
};

struct MeasureAnswer {
  Status status; ///< of ready, checkInputs and recover
  std::optional<tuner::Failure> failure;
  double number = 0; ///< the error of verify, the microseconds of sample
  int64_t smClockMhz = 0;
  double powerWatts = 0;
};

std::string encode(const MeasureTask &task);
std::string encode(const MeasureQuestion &question);
std::string encode(const MeasureAnswer &answer);

/// corrupt: what is no such message.
Result<MeasureTask> decodeTask(const std::string &message);
Result<MeasureQuestion> decodeQuestion(const std::string &message);
Result<MeasureAnswer> decodeAnswer(const std::string &message);

} // namespace heddle
