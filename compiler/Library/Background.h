// Owns a thread that does one piece of work after the other, and what callers hold of a piece: wait, cancel.
#pragma once

#include "runtime/Core/Status.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace heddle {

/// One piece of work. Thread safe.
class Task {
public:
  /// Asks it to end; work that has not begun never does.
  void cancel() { cancelled = true; }
  const std::atomic<bool> &isCancelled() const { return cancelled; }
  /// Waits at most so many seconds, negative or infinite: forever; no NaN. True if it is over.
  bool wait(double seconds) const;
  /// The status of the work; ok until it is over.
  Status status() const;

private:
  friend class Background;
  void end(Status result);

  std::atomic<bool> cancelled{false};
  mutable std::mutex mutex; ///< guards what follows
  mutable std::condition_variable over;
  bool isOver = false;
  Status result;
};

/// The work gets its task, so that it can look for its cancellation; it says what became of it, and may not throw.
using Work = std::function<Status(const Task &)>;

/// Members are thread safe. The thread starts with the first piece. A child of fork has no such thread: it may destroy
/// what it inherited, and the work stays its parent's.
class Background {
public:
  Background();
  /// Cancels everything and waits; pieces that have not begun are run all the same, cancelled.
  ~Background();
  /// Throws, and has not taken the work, if the system has no thread for it or in a child of fork.
  std::shared_ptr<Task> add(Work work);

private:
  struct Piece {
    std::shared_ptr<Task> task;
    Work work;
  };
  struct State {
    std::mutex mutex; ///< guards what follows
    std::condition_variable changed;
    std::deque<Piece> pieces; ///< the first one may be running
    bool isClosing = false;
    std::thread thread;

    void run();
  };
  bool isInherited() const;

  const int process; ///< that this was made in
  std::unique_ptr<State> state;
};

} // namespace heddle
