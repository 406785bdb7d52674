#include "tuner/Measure/Evaluator.h"
#include "runtime/Core/Plausible.h"

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
  Verification result = guarded<Verification>(Outcome::launchFailed, [&] { return evaluator.verify(candidate); });
  if (const std::string wrong = wrongError(result.maxError, {}); !result.failure && !wrong.empty())
    result.failure = Failure{Outcome::wrong, "the evaluator took a result for right: " + wrong};
  return result;
}

Sample guardedSample(Evaluator &evaluator, Candidate &candidate) {
  Sample result = guarded<Sample>(Outcome::launchFailed, [&] { return evaluator.sample(candidate); });
  if (const std::string wrong = wrongTime(result.us); !result.failure && !wrong.empty())
    result.failure = Failure{Outcome::launchFailed, "the evaluator returned a time that no launch takes: " + wrong};
  return result;
}

Verification guardedConfirm(Evaluator &evaluator, Candidate &candidate) {
  return guarded<Verification>(Outcome::launchFailed, [&] { return evaluator.confirm(candidate); });
}

} // namespace heddle::tuner
