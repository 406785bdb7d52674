//===- Background.cpp -----------------------------------------------------===//
#include "compiler/Library/Background.h"

#include <algorithm>
#include <chrono>

namespace heddle {

bool Task::wait(double seconds) const {
  std::unique_lock<std::mutex> lock(mutex);
  if (seconds < 0)
    over.wait(lock, [this] { return isOver; });
  else
    over.wait_for(lock, std::chrono::duration<double>(std::min(seconds, 1e9)), [this] { return isOver; });
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

Background::~Background() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isClosing = true;
    for (Piece &piece : pieces)
      piece.task->cancel();
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

std::shared_ptr<Task> Background::add(Work work) {
  auto task = std::make_shared<Task>();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!thread.joinable()) // first: the system may have no thread
      thread = std::thread([this] { run(); });
    pieces.push_back({task, std::move(work)});
    if (isClosing) // asked for by the last pieces
      task->cancel();
  }
  changed.notify_all();
  return task;
}

void Background::run() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return isClosing || !pieces.empty(); });
    if (pieces.empty())
      return;
    Piece piece = pieces.front();
    lock.unlock();
    Status result = piece.work(*piece.task);
    piece.task->end(std::move(result));
    piece = {};
    lock.lock();
    pieces.pop_front();
  }
}

} // namespace heddle
