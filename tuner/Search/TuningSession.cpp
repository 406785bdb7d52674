#include "tuner/Search/TuningSession.h"
#include "tuner/Search/Final.h"
#include "tuner/Search/PreparePool.h"
#include "tuner/Search/Strategies.h"
#include "tuner/Search/TrialBook.h"

#include <algorithm>
#include <future>

namespace heddle::tuner {

const char *endReasonName(EndReason reason) {
  constexpr const char *names[] = {"exhausted", "budget", "cancelled"};
  return names[size_t(reason)];
}

namespace {

Status checkTask(const TuningTask &task, const TuningOptions &options) {
  if (!task.space || !task.evaluator || !task.sink)
    return Status::invalidArgument("tuning: a search space, an evaluator and a sink are needed");
  if (!(options.budgetSeconds > 0))
    return Status::invalidArgument("tuning budget: expected more than 0 seconds, got " +
                                   std::to_string(options.budgetSeconds) + "; 60 is a good start");
  if (options.workers < 0 || options.ahead < 1 || options.finalists < 0 || options.maxAbandoned < 0)
    return Status::invalidArgument("tuning: expected workers, finalists and abandoned >= 0, and at "
                                   "least 1 point ahead");
  if (!(options.prepareLimitSeconds > 0) || !(options.finalShare >= 0 && options.finalShare < 1))
    return Status::invalidArgument("tuning: expected a compile limit above 0 s and a share of the "
                                   "final of at least 0 and below 1");
  return checkTimingOptions(options.timing);
}

Status noFeasiblePoint(const SearchSpace &space, const Enumeration &all) {
  std::string refused;
  for (const auto &[name, count] : all.refused)
    if (count)
      refused += (refused.empty() ? "" : ", ") + name + " refuses " + std::to_string(count);
  return Status::unsupported("search space '" + space.name() + "': none of " + std::to_string(all.examined) +
                             " points is feasible: " + refused);
}

// One call of runTuningSession.
class Session {
public:
  Session(const TuningTask &task, const TuningOptions &options, std::shared_ptr<const Clock> clock)
      : task(task), options(options), space(*task.space), clock(clock), startedAt(clock->now()),
        book(size_t(std::max(options.finalists, 1))) {}

  Status run() {
    HEDDLE_TRY(orderPoints(task.strategy, {}, false).status());
    HEDDLE_TRY(readKnown());
    HEDDLE_TRY(search());
    HEDDLE_TRY(runFinal());
    HEDDLE_TRY(chooseWinner());
    result.outcomes = book.outcomes();
    result.elapsedSeconds = clock->now() - startedAt;
    return Status();
  }

  TuningResult result;

private:
  bool isCancelled() const { return options.cancel && options.cancel->load(); }
  bool isOver(double share) const {
    return isCancelled() || clock->now() - startedAt - waited >= options.budgetSeconds * share;
  }
  bool hasFinal() const { return options.finalists > 1; }
  double searchShare() const { return hasFinal() ? 1 - options.finalShare : 1; }

  Status readKnown();
  Status beReady();
  std::vector<Point> firstPoints() const;
  Result<Enumeration> otherPoints(const std::vector<Point> &first) const;
  const PointTrial *meet(const Point &point);
  Status tryFirst(PreparePool &pool);
  Status search();
  bool fill(PreparePool &pool);
  Status evaluate(PreparedPoint prepared);
  Status verifyAndTime(Candidate &candidate, PointTrial &trial, bool &isInterrupted);
  Status keep(PointTrial trial, std::shared_ptr<Candidate> candidate);
  Status runFinal();
  Status chooseWinner();
  void nameWinner();
  std::optional<Failure> prepareWinner();
  Status disqualify(const Failure &failure);
  void report(bool isFinal);

  const TuningTask &task;
  const TuningOptions &options;
  const SearchSpace &space;
  std::shared_ptr<const Clock> clock;
  double startedAt;
  double waited = 0;          // for the evaluator to get ready: not the search's time
  std::vector<Point> waiting; // in the order of the strategy
  size_t next = 0;            // of them
  TrialBook book;             // known and new
  size_t met = 0;             // known trials that were proposed
  size_t failed = 0;          // of the met and the new ones
};

Status Session::readKnown() {
  HEDDLE_ASSIGN(std::vector<PointTrial> known, task.sink->known(space));
  for (PointTrial &trial : known) {
    if (space.whyInfeasible(trial.point))
      continue;
    trial.config = space.text(trial.point);
    book.add(std::move(trial));
  }
  result.known = book.size();
  return Status();
}

Status Session::beReady() {
  const double before = clock->now();
  HEDDLE_TRY(task.evaluator->ready());
  waited += clock->now() - before;
  return Status();
}

std::vector<Point> Session::firstPoints() const {
  std::vector<Point> first;
  for (const std::string &text : task.first) {
    Result<Point> point = space.parse(text);
    if (point && !space.whyInfeasible(*point) && std::find(first.begin(), first.end(), *point) == first.end())
      first.push_back(point.take());
  }
  return first;
}

// Every feasible point but the first, most promising first. Runs beside the measurement of the first.
Result<Enumeration> Session::otherPoints(const std::vector<Point> &first) const {
  HEDDLE_ASSIGN(Enumeration all, space.enumerate());
  if (all.points.empty())
    return noFeasiblePoint(space, all);
  auto isFirst = [&](const Point &point) { return std::find(first.begin(), first.end(), point) != first.end(); };
  if (!first.empty())
    all.points.erase(std::remove_if(all.points.begin(), all.points.end(), isFirst), all.points.end());
  if (task.prior)
    sortByPrior(all.points, task.prior);
  return all;
}

// A point that is wanted: its trial, null if nobody tried it.
const PointTrial *Session::meet(const Point &point) {
  const PointTrial *known = book.find(point);
  met += known != nullptr;
  failed += known && isFailure(known->outcome);
  return known;
}

// The first points: those that are not known go to the pool, and are measured until the others are in order.
Status Session::tryFirst(PreparePool &pool) {
  const std::vector<Point> first = firstPoints();
  for (const Point &point : first)
    if (const PointTrial *known = meet(point); !known)
      pool.submit(point);
  // whichever there is a thread for
  const auto policy = options.workers > 0 ? std::launch::async | std::launch::deferred : std::launch::deferred;
  std::future<Result<Enumeration>> others = std::async(policy, [this, &first] { return otherPoints(first); });
  auto isReady = [&] { return others.wait_for(std::chrono::seconds(0)) != std::future_status::timeout; };
  while (pool.pending() > 0 && !isReady() && !isOver(searchShare()))
    if (std::optional<PreparedPoint> prepared = pool.next([&] { return isOver(searchShare()) || isReady(); }))
      HEDDLE_TRY(evaluate(std::move(*prepared)));
  HEDDLE_ASSIGN(Enumeration rest, others.get());
  result.examined = rest.examined;
  result.feasible = rest.points.size() + first.size();
  HEDDLE_ASSIGN(waiting, orderPoints(task.strategy, std::move(rest.points), task.prior != nullptr));
  return Status();
}

// Keeps the pool busy. Known points are answered from their trials. True if nothing is left to wait for.
bool Session::fill(PreparePool &pool) {
  while (pool.pending() < size_t(options.ahead) && !isOver(searchShare())) {
    if (next == waiting.size())
      return pool.pending() == 0;
    const Point &point = waiting[next++];
    if (meet(point))
      report(false);
    else
      pool.submit(point);
  }
  return false;
}

Status Session::search() {
  PreparePool pool(task.evaluator, clock, options.workers, options.prepareLimitSeconds);
  auto isInterrupted = [this] { return isOver(searchShare()); };
  HEDDLE_TRY(tryFirst(pool));
  while (!fill(pool)) {
    if (isInterrupted()) {
      result.end = isCancelled() ? EndReason::cancelled : EndReason::budget;
      return Status();
    }
    if (std::optional<PreparedPoint> prepared = pool.next(isInterrupted))
      HEDDLE_TRY(evaluate(std::move(*prepared)));
    if (pool.abandoned() > options.maxAbandoned)
      return Status::unavailable("tuning: " + std::to_string(pool.abandoned()) + " compilations passed the limit of " +
                                 std::to_string(options.prepareLimitSeconds) + " s and did not return");
  }
  return Status();
}

// Takes one prepared point through verification and timing. Interrupted ones leave no trial.
Status Session::evaluate(PreparedPoint prepared) {
  PointTrial trial;
  trial.point = prepared.point;
  trial.config = space.text(prepared.point);
  trial.registers = prepared.preparation.registers;
  trial.spillBytes = prepared.preparation.spillBytes;
  trial.compileSeconds = prepared.seconds;
  result.compileSeconds += prepared.seconds;
  bool isInterrupted = false;
  if (prepared.preparation.failure) {
    trial.outcome = prepared.preparation.failure->outcome;
    trial.message = prepared.preparation.failure->message;
  } else {
    HEDDLE_TRY(verifyAndTime(*prepared.preparation.candidate, trial, isInterrupted));
  }
  if (isInterrupted)
    return Status();
  return keep(std::move(trial), std::move(prepared.preparation.candidate));
}

Status Session::verifyAndTime(Candidate &candidate, PointTrial &trial, bool &isInterrupted) {
  HEDDLE_TRY(beReady());
  if (isOver(searchShare())) {
    isInterrupted = true;
    return Status();
  }
  const double start = clock->now();
  const Verification verification = guardedVerify(*task.evaluator, candidate);
  trial.maxError = verification.maxError;
  if (verification.failure) {
    trial.outcome = verification.failure->outcome;
    trial.message = verification.failure->message;
  } else {
    const TimingRun run{options.timing, book.bestUs(), *clock, [this] { return isOver(searchShare()); }};
    const Timing timing = timeInterleaved(*task.evaluator, {&candidate}, run).front();
    trial.outcome = timing.outcome;
    trial.message = timing.message;
    trial.medianUs = timing.statistics.medianUs;
    trial.minUs = timing.statistics.minUs;
    trial.spread = timing.statistics.spread;
    trial.samples = timing.samples;
    trial.smClockMhz = timing.smClockMhz;
    trial.powerWatts = timing.powerWatts;
    isInterrupted = timing.isInterrupted;
  }
  trial.measureSeconds = clock->now() - start;
  result.measureSeconds += trial.measureSeconds;
  if (trial.outcome == Outcome::launchFailed || trial.outcome == Outcome::timedOut) {
    if (Status recovered = task.evaluator->recover(); !recovered.isOk()) {
      HEDDLE_TRY(keep(trial, nullptr));
      return Status(recovered.code(),
                    "tuning: after '" + trial.config + "' (" + trial.message + "): " + recovered.message());
    }
  }
  return Status();
}

Status Session::keep(PointTrial trial, std::shared_ptr<Candidate> candidate) {
  HEDDLE_TRY(task.sink->record(space, trial));
  ++result.measuredNow;
  failed += isFailure(trial.outcome);
  if (trial.isUsable() && !result.firstUsableSeconds)
    result.firstUsableSeconds = clock->now() - startedAt;
  book.add(std::move(trial), std::move(candidate));
  report(false);
  return Status();
}

Status Session::runFinal() {
  if (!hasFinal() || result.measuredNow == 0 || isOver(1))
    return Status();
  std::vector<Entrant> finalists = book.entrants(size_t(options.finalists), task.incumbent);
  if (finalists.size() < 2)
    return Status();
  report(true);
  HEDDLE_TRY(beReady());
  const FinalConditions conditions{task.evaluator, clock, options, [this] { return isOver(1); }};
  FinalResult final = timeFinal(conditions, std::move(finalists));
  result.compileSeconds += final.compileSeconds;
  result.measureSeconds += final.measureSeconds;
  if (isCancelled())
    result.end = EndReason::cancelled;
  for (const PointTrial &trial : final.failed) {
    HEDDLE_TRY(task.sink->record(space, trial));
    book.replace(trial);
  }
  HEDDLE_TRY(final.deviceStatus);
  for (Entrant &entrant : final.ranking) {
    result.finalists.push_back(entrant.trial);
    book.hold(entrant.trial.point, std::move(entrant.candidate));
  }
  return Status();
}

// The best that is confirmed. One whose candidate is not at hand was confirmed when it won, or takes the place of one
// that was not: then it is prepared once more.
Status Session::chooseWinner() {
  bool mustBeAtHand = false;
  while (true) {
    nameWinner();
    if (!result.winner || (!result.candidate && !mustBeAtHand))
      return Status();
    std::optional<Failure> failure = result.candidate ? std::nullopt : prepareWinner();
    if (!failure)
      failure = guardedConfirm(*task.evaluator, *result.candidate).failure;
    if (!failure)
      return Status();
    HEDDLE_TRY(disqualify(*failure));
    mustBeAtHand = true;
  }
}

std::optional<Failure> Session::prepareWinner() {
  const std::atomic<bool> never{false};
  Preparation prepared = guardedPrepare(*task.evaluator, result.winner->point, never);
  if (prepared.failure)
    return prepared.failure;
  result.candidate = std::move(prepared.candidate);
  return guardedVerify(*task.evaluator, *result.candidate).failure;
}

Status Session::disqualify(const Failure &failure) {
  PointTrial trial = *result.winner;
  trial.outcome = failure.outcome;
  trial.message = "as the winner: " + failure.message;
  trial.medianUs = trial.minUs = trial.spread = 0;
  trial.samples = 0;
  HEDDLE_TRY(task.sink->record(space, trial));
  if (!result.finalists.empty())
    result.finalists.erase(result.finalists.begin());
  book.replace(std::move(trial));
  return Status();
}

void Session::nameWinner() {
  result.winner.reset();
  result.candidate.reset();
  const std::vector<const PointTrial *> usable = book.usableBestFirst();
  if (!result.finalists.empty()) {
    result.winner = result.finalists.front();
  } else if (!usable.empty()) {
    result.winner = *usable.front();
    for (const PointTrial *trial : usable)
      if (result.measuredNow == 0 && trial->config == task.incumbent)
        result.winner = *trial;
  }
  if (!result.winner)
    return;
  result.candidate = book.candidateOf(result.winner->point);
}

void Session::report(bool isFinal) {
  if (!options.progress)
    return;
  Progress progress;
  progress.done = met + result.measuredNow;
  progress.total = result.feasible;
  progress.failed = failed;
  if (const PointTrial *best = book.best()) {
    progress.bestUs = best->medianUs;
    progress.bestConfig = best->config;
  }
  progress.elapsedSeconds = clock->now() - startedAt;
  progress.budgetSeconds = options.budgetSeconds;
  progress.isFinal = isFinal;
  options.progress(progress);
}

} // namespace

Result<TuningResult> runTuningSession(const TuningTask &task, const TuningOptions &options) {
  HEDDLE_TRY(checkTask(task, options));
  Session session(task, options, task.clock ? task.clock : std::make_shared<const SteadyClock>());
  HEDDLE_TRY(session.run());
  return std::move(session.result);
}

} // namespace heddle::tuner
