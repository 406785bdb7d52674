#include "tuner/Search/LeftBehind.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

namespace heddle::tuner {

namespace {

struct Registry {
  std::mutex mutex; // guards what follows
  std::condition_variable changed;
  int running = 0;
  pid_t process = 0; // that the threads are of; a child of fork has none of them
};

// Never destroyed: threads outlive everything.
Registry &registry() {
  static Registry *const only = new Registry;
  return *only;
}

void atExit(int code, void *) {
  constexpr auto kGrace = std::chrono::seconds(2); // for those that were told to stop, and do
  Registry &all = registry();
  if (all.process != ::getpid())
    return;
  std::unique_lock<std::mutex> lock(all.mutex);
  if (all.changed.wait_for(lock, kGrace, [&] { return all.running == 0; }))
    return;
  std::fflush(nullptr);
  ::_exit(code);
}

// The handler and the threads must find their code, whatever library it is in and whoever closes that.
void stayLoaded() {
  Dl_info here = {};
  if (::dladdr(reinterpret_cast<const void *>(&atExit), &here) && here.dli_fname)
    ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

} // namespace

void leaveBehind() {
  stayLoaded();
  ::on_exit(atExit, nullptr); // each time: what was made since the last is destroyed before that one is called
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.process != ::getpid())
    all.running = 0;
  all.process = ::getpid();
  ++all.running;
}

void endLeftBehind() {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  --all.running;
  all.changed.notify_all();
}

} // namespace heddle::tuner
