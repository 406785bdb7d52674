#include "runtime/Distributed/CallThread.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace heddle {

struct CallThread::State {
  std::mutex mutex; // guards call and isClosed
  std::condition_variable changed;
  std::function<void()> call;
  bool isClosed = false;
  std::atomic<bool> isRunning{false};

  void serve() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return call || isClosed; });
        if (!call)
          return;
        next.swap(call);
      }
      next();
      next = nullptr;
      isRunning = false;
    }
  }
};

CallThread::CallThread() : state(std::make_shared<State>()) {
  std::thread([state = state] { state->serve(); }).detach();
}

CallThread::~CallThread() {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->isClosed = true;
  state->changed.notify_one();
}

bool CallThread::run(std::function<void()> call, const std::function<bool()> &isOver) {
  if (state->isRunning.exchange(true))
    return false;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->call = std::move(call);
    state->changed.notify_one();
  }
  while (state->isRunning)
    if (isOver())
      return !state->isRunning;
  return true;
}

} // namespace heddle
