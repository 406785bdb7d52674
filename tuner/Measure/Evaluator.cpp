//===- Evaluator.cpp --------------------------------------------------------===//
#include "tuner/Measure/Evaluator.h"

#include <exception>

namespace heddle::tuner {

namespace {

// Runs one stage. The answer of a stage that throws is a failure with `outcome`.
template <class Answer, class Stage> Answer guarded(Outcome outcome, Stage &&stage) {
  Answer answer;
  try {
    return stage();
  } catch (const std::exception &exception) {
    answer.failure = Failure{outcome, std::string("exception: ") + exception.what()};
  } catch (...) {
    answer.failure = Failure{outcome, "exception of unknown type"};
  }
  return answer;
}

} // namespace

Preparation guardedPrepare(Evaluator &evaluator, const Point &point, const std::atomic<bool> &stop) {
  Preparation result = guarded<Preparation>(Outcome::compileFailed, [&] { return evaluator.prepare(point, stop); });
  if (!result.failure && !result.candidate)
    result.failure = Failure{Outcome::compileFailed, "the evaluator returned no candidate"};
  return result;
}

Verification guardedVerify(Evaluator &evaluator, Candidate &candidate) {
  return guarded<Verification>(Outcome::launchFailed, [&] { return evaluator.verify(candidate); });
}

Sample guardedSample(Evaluator &evaluator, Candidate &candidate) {
  Sample result = guarded<Sample>(Outcome::launchFailed, [&] { return evaluator.sample(candidate); });
  if (!result.failure && !(result.us > 0))
    result.failure = Failure{Outcome::launchFailed, "the evaluator returned a time that is not "
                                                    "positive: " +
                                                        std::to_string(result.us)};
  return result;
}

Verification guardedConfirm(Evaluator &evaluator, Candidate &candidate) {
  return guarded<Verification>(Outcome::launchFailed, [&] { return evaluator.confirm(candidate); });
}

} // namespace heddle::tuner
