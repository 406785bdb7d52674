// Owns a thread for calls into libraries that block for as long as another rank likes. Who waits for such a call may
// give it up; then the thread is left alone with what the call holds, until the call returns.
#pragma once

#include <functional>
#include <memory>

namespace heddle {

// Used by one thread at a time.
class CallThread {
public:
  CallThread();
  ~CallThread(); // does not wait for a call that was given up
  CallThread(const CallThread &) = delete;
  CallThread &operator=(const CallThread &) = delete;

  // Whether `call`, which must not throw, returned before `isOver` said so. False ever after it did not.
  bool run(std::function<void()> call, const std::function<bool()> &isOver);

private:
  struct State;
  std::shared_ptr<State> state;
};

} // namespace heddle
