// Owns the start of another program, the wait for its end within a limit, and its end where nobody waits any more. Any
// thread may do each: no signal of this process is used.
#pragma once

#include "runtime/Core/Status.h"

#include <optional>
#include <spawn.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace heddle {

/// What a program's descriptors are, set in this order as it starts.
class ProgramFiles {
public:
  ProgramFiles();
  ~ProgramFiles();
  ProgramFiles(const ProgramFiles &) = delete;
  ProgramFiles &operator=(const ProgramFiles &) = delete;
  ProgramFiles &copy(int from, int to);
  ProgramFiles &read(const std::string &path, int to);
  ProgramFiles &write(const std::string &path, int to); ///< made anew

private:
  friend class RunningProgram;
  posix_spawn_file_actions_t actions;
};

struct ProgramCall {
  std::string program;
  std::vector<std::string> arguments;                       ///< behind the program's name
  std::optional<std::vector<std::string>> environment = {}; ///< "NAME=value"; none: this process's
  bool ownsGroup = false; ///< what it starts dies with it, and a signal of the terminal does not reach it
};

struct ProgramEnd {
  static constexpr int kUnknown = -1; ///< where SIGCHLD is ignored, the system forgets the code
  int code = 0;                       ///< that it exited with
  int signal = 0;                     ///< that ended it, else 0
  std::string str() const;            ///< "ended with exit code 3"
};

/// Move-only, used by one thread at a time.
class RunningProgram {
public:
  /// unavailable: it cannot be started, and why.
  static Result<RunningProgram> start(const ProgramCall &call, const ProgramFiles &files);
  RunningProgram(RunningProgram &&other) noexcept : process(other.process), ownsGroup(other.ownsGroup) {
    other.process = -1;
  }
  RunningProgram &operator=(RunningProgram &&) = delete;
  ~RunningProgram(); ///< kills it, unless its end was told

  /// How it ended; nothing if it has not within the limit, or if its end was told before.
  std::optional<ProgramEnd> waitForEnd(double limitSeconds);

private:
  RunningProgram(pid_t process, bool ownsGroup) : process(process), ownsGroup(ownsGroup) {}
  pid_t process;
  bool ownsGroup;
};

} // namespace heddle
