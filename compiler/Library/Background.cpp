#include "compiler/Library/Background.h"
#include "runtime/Core/Thrown.h"

#include <chrono>
#include <stdexcept>
#include <unistd.h>

namespace heddle {

bool Task::wait(double seconds) const {
  constexpr double kForever = 1e9; // a third of a century; clocks count nanoseconds in 63 bits
  std::unique_lock<std::mutex> lock(mutex);
  if (seconds < 0 || seconds > kForever)
    over.wait(lock, [this] { return isOver; });
  else
    over.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return isOver; });
  return isOver;
}

Status Task::status() const {
  std::lock_guard<std::mutex> lock(mutex);
  return result;
}

void Task::end(Status status) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
    result = std::move(status);
  }
  over.notify_all();
}

Background::Background() : process(::getpid()), state(std::make_unique<State>()) {}

Background::~Background() {
  if (isInherited()) {
    static_cast<void>(state.release()); // neither its lock nor its thread can be waited for here
    return;
  }
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->isClosing = true;
    for (Piece &piece : state->pieces)
      piece.task->cancel();
  }
  state->changed.notify_all();
  if (state->thread.joinable())
    state->thread.join();
}

bool Background::isInherited() const { return ::getpid() != process; }

std::shared_ptr<Task> Background::add(Work work) {
  if (isInherited())
    throw std::runtime_error(
        "work in the background belongs to the process that opened the compiler; after fork open another");
  auto task = std::make_shared<Task>();
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    if (!state->thread.joinable()) // first: the system may have no thread
      state->thread = std::thread([state = state.get()] { state->run(); });
    state->pieces.push_back({task, std::move(work)});
    if (state->isClosing) // asked for by the last pieces
      task->cancel();
  }
  state->changed.notify_all();
  return task;
}

void Background::State::run() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return isClosing || !pieces.empty(); });
    if (pieces.empty())
      return;
    Piece piece = pieces.front();
    lock.unlock();
    Status result = withoutExceptions([&] { return piece.work(*piece.task); });
    piece.task->end(std::move(result));
    piece = {};
    lock.lock();
    pieces.pop_front();
  }
}

} // namespace heddle
