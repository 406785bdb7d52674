// Child processes of the store tests: started by fork, ended by themselves or by SIGKILL.
#ifndef HEDDLE_TESTS_UNIT_PROCESS_FIXTURE_H
#define HEDDLE_TESTS_UNIT_PROCESS_FIXTURE_H

#include <csignal>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::test {

inline pid_t startChild(const std::function<int()> &work) {
  pid_t child = fork();
  if (child == 0)
    _exit(work());
  return child;
}

// The exit code; 200 + signal if it was killed.
inline int waitFor(pid_t child) {
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 200 + WTERMSIG(state);
}

// Zeroed numbers that parent and children see; what a killed child wrote stays.
class SharedNumbers {
public:
  explicit SharedNumbers(size_t count)
      : bytes(count * sizeof(int)),
        values(static_cast<int *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedNumbers(const SharedNumbers &) = delete;
  ~SharedNumbers() { munmap(values, bytes); }
  volatile int &operator[](size_t i) const { return values[i]; }

private:
  size_t bytes;
  int *values;
};

} // namespace heddle::test

#endif
