//===- PreparePool.cpp ------------------------------------------------------===//
// All threads are detached and hold the shared state; the destructor waits on a count of busy ones.
#include "tuner/Search/PreparePool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace heddle::tuner {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);
constexpr auto kGrace = std::chrono::seconds(2);

struct Job {
  enum class State { waiting, running, done, abandoned };

  Point point;
  State state = State::waiting;
  double startedAt = 0;
  double seconds = 0;
  std::atomic<bool> stop{false};
  Preparation preparation;
};

Failure limitFailure(double seconds, double limitSeconds) {
  char text[96];
  std::snprintf(text, sizeof text, "compilation took %.2f s, the limit is %.2f s", seconds, limitSeconds);
  return {Outcome::timedOut, text};
}

} // namespace

struct PreparePool::Shared {
  std::shared_ptr<Evaluator> evaluator;
  std::shared_ptr<const Clock> clock;
  int workers = 0; // threads that may take jobs; without any, next() does their work
  double limitSeconds = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> jobs; // in the order of submission, until next() returns them
  int busy = 0;                          // threads inside prepare, without abandoned ones
  int abandoned = 0;
  bool isClosing = false;

  std::shared_ptr<Job> firstIn(Job::State wanted) {
    auto job =
        std::find_if(jobs.begin(), jobs.end(), [&](const auto &candidate) { return candidate->state == wanted; });
    return job == jobs.end() ? nullptr : *job;
  }

  PreparedPoint takeOut(const std::shared_ptr<Job> &job) {
    jobs.erase(std::find(jobs.begin(), jobs.end(), job));
    if (!job->preparation.failure && job->seconds > limitSeconds)
      job->preparation.failure = limitFailure(job->seconds, limitSeconds);
    return {job->point, std::move(job->preparation), job->seconds};
  }

  // Needs the lock, which is released while the evaluator works.
  void execute(const std::shared_ptr<Job> &job, std::unique_lock<std::mutex> &lock) {
    job->state = Job::State::running;
    job->startedAt = clock->now();
    lock.unlock();
    Preparation preparation = guardedPrepare(*evaluator, job->point, job->stop);
    lock.lock();
    if (job->state == Job::State::abandoned)
      return;
    job->seconds = clock->now() - job->startedAt;
    job->preparation = std::move(preparation);
    job->state = Job::State::done;
  }

  // The life of one worker thread: until the pool closes, or its job was abandoned.
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      std::shared_ptr<Job> job;
      changed.wait(lock, [&] { return isClosing || (job = firstIn(Job::State::waiting)); });
      if (isClosing)
        return;
      ++busy;
      execute(job, lock);
      if (job->state == Job::State::abandoned)
        return;
      --busy;
      changed.notify_all();
    }
  }

  // The first running job past the limit, if any: marks it, and takes its thread out of the count.
  std::shared_ptr<Job> abandonLate() {
    const double now = clock->now();
    for (const std::shared_ptr<Job> &job : jobs)
      if (job->state == Job::State::running && now - job->startedAt > limitSeconds) {
        job->seconds = now - job->startedAt;
        job->preparation.failure = limitFailure(job->seconds, limitSeconds);
        job->state = Job::State::abandoned;
        job->stop = true;
        --busy;
        ++abandoned;
        return job;
      }
    return nullptr;
  }

  // False if the system has no thread.
  static bool startWorker(const std::shared_ptr<Shared> &shared) {
    try {
      std::thread([shared] { shared->work(); }).detach();
    } catch (const std::system_error &) {
      return false;
    }
    return true;
  }
};

PreparePool::PreparePool(std::shared_ptr<Evaluator> evaluator, std::shared_ptr<const Clock> clock, int workers,
                         double limitSeconds)
    : shared(std::make_shared<Shared>()) {
  shared->evaluator = std::move(evaluator);
  shared->clock = std::move(clock);
  shared->limitSeconds = limitSeconds;
  while (shared->workers < workers && Shared::startWorker(shared))
    ++shared->workers;
}

PreparePool::~PreparePool() {
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->isClosing = true;
  for (const std::shared_ptr<Job> &job : shared->jobs)
    job->stop = true;
  shared->changed.notify_all();
  shared->changed.wait_for(lock, kGrace, [&] { return shared->busy == 0; });
}

void PreparePool::submit(const Point &point) {
  auto job = std::make_shared<Job>();
  job->point = point;
  std::lock_guard<std::mutex> lock(shared->mutex);
  shared->jobs.push_back(std::move(job));
  shared->changed.notify_all();
}

size_t PreparePool::pending() const {
  std::lock_guard<std::mutex> lock(shared->mutex);
  return shared->jobs.size();
}

int PreparePool::abandoned() const {
  std::lock_guard<std::mutex> lock(shared->mutex);
  return shared->abandoned;
}

std::optional<PreparedPoint> PreparePool::next(const std::function<bool()> &isInterrupted) {
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->jobs.empty() && !isInterrupted()) {
    if (std::shared_ptr<Job> done = shared->firstIn(Job::State::done))
      return shared->takeOut(done);
    if (shared->workers == 0) {
      shared->execute(shared->jobs.front(), lock);
      continue;
    }
    if (std::shared_ptr<Job> late = shared->abandonLate()) {
      if (!Shared::startWorker(shared))
        --shared->workers;
      return shared->takeOut(late);
    }
    shared->changed.wait_for(lock, kPollInterval);
  }
  return std::nullopt;
}

} // namespace heddle::tuner
