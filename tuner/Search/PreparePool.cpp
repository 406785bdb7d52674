// Threads hold the shared state. The destructor joins them all, but those whose work was given up (LeftBehind.h).
#include "tuner/Search/PreparePool.h"

#include "tuner/Search/LeftBehind.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

namespace heddle::tuner {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);

struct Job {
  enum class State { waiting, running, done, abandoned };

  Point point;
  State state = State::waiting;
  std::thread::id worker; // of what is running
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
  std::list<std::thread> threads; // of the pool's own thread alone

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

  // The life of one worker thread: until the pool closes, or its job was abandoned; tells which.
  bool work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      std::shared_ptr<Job> job;
      changed.wait(lock, [&] { return isClosing || (job = firstIn(Job::State::waiting)); });
      if (isClosing)
        return false;
      ++busy;
      job->worker = std::this_thread::get_id();
      execute(job, lock);
      if (job->state == Job::State::abandoned)
        return true;
      --busy;
      changed.notify_all();
    }
  }

  // The first running job past the limit, if any: marks it, leaves its thread to itself and takes it out of the count.
  // For the pool's own thread.
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
        leaveBehind();
        detach(job->worker);
        return job;
      }
    return nullptr;
  }

  void detach(std::thread::id worker) {
    auto thread =
        std::find_if(threads.begin(), threads.end(), [&](const auto &known) { return known.get_id() == worker; });
    thread->detach();
    threads.erase(thread);
  }

  // False if the system has no thread.
  static bool startWorker(const std::shared_ptr<Shared> &shared) {
    try {
      shared->threads.emplace_back([held = shared]() mutable {
        const bool isAbandoned = held->work();
        held.reset();
        if (isAbandoned)
          endLeftBehind();
      });
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
  while (shared->busy > 0)
    if (!shared->abandonLate())
      shared->changed.wait_for(lock, kPollInterval);
  lock.unlock();
  for (std::thread &thread : shared->threads)
    thread.join();
  shared->threads.clear();
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
