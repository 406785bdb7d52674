// Runs code where the system has no thread for it.
#ifndef HEDDLE_TESTS_UNIT_WITHOUT_THREADS_H
#define HEDDLE_TESTS_UNIT_WITHOUT_THREADS_H

#include <cstdlib>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::test {

inline bool giveThreadsUp() {
  constexpr uid_t kNobody = 65534; // root's threads are not limited
  const rlimit none = {1, 1};
  return (getuid() != 0 || setuid(kNobody) == 0) && setrlimit(RLIMIT_NPROC, &none) == 0;
}

enum class Outcome { good, bad, skipped };

// What `work`, which returns whether all went well, says in a child process that gets no further thread.
template <class Work> Outcome withoutThreads(const Work &work) {
  constexpr int kGood = 0, kBad = 1, kSkipped = 77;
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(!giveThreadsUp() ? kSkipped : work() ? kGood : kBad);
    } catch (...) {
      _exit(kBad);
    }
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return Outcome::skipped;
  return !WIFEXITED(status) || WEXITSTATUS(status) == kBad ? Outcome::bad
         : WEXITSTATUS(status) == kGood                    ? Outcome::good
                                                           : Outcome::skipped;
}

} // namespace heddle::test

#endif
