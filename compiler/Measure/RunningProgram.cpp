#include "compiler/Measure/RunningProgram.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A process that a driver holds may take a while to go, or never does: it is left behind then.
constexpr double kKillSeconds = 20;
/// Short for what ends at once, long for what works for minutes beside measurements.
constexpr milliseconds kShortestPause{1}, kLongestPause{20};

/// As exec takes them. The words must live longer.
std::vector<char *> pointersTo(const std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (const std::string &word : words)
    pointers.push_back(const_cast<char *>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

} // namespace

ProgramFiles::ProgramFiles() { posix_spawn_file_actions_init(&actions); }
ProgramFiles::~ProgramFiles() { posix_spawn_file_actions_destroy(&actions); }

ProgramFiles &ProgramFiles::copy(int from, int to) {
  posix_spawn_file_actions_adddup2(&actions, from, to);
  return *this;
}

ProgramFiles &ProgramFiles::read(const std::string &path, int to) {
  posix_spawn_file_actions_addopen(&actions, to, path.c_str(), O_RDONLY, 0);
  return *this;
}

ProgramFiles &ProgramFiles::write(const std::string &path, int to) {
  posix_spawn_file_actions_addopen(&actions, to, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  return *this;
}

std::string ProgramEnd::str() const {
  if (signal)
    return "ended with signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  return code == kUnknown ? "ended, and this process was not told how" : "ended with exit code " + std::to_string(code);
}

Result<RunningProgram> RunningProgram::start(const ProgramCall &call, const ProgramFiles &files) {
  std::vector<std::string> words = {call.program};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  const std::vector<char *> arguments = pointersTo(words);
  const std::vector<char *> environment = call.environment ? pointersTo(*call.environment) : std::vector<char *>();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (call.ownsGroup)
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int error = posix_spawn(&process, call.program.c_str(), &files.actions, &attributes, arguments.data(),
                                call.environment ? environment.data() : environ);
  posix_spawnattr_destroy(&attributes);
  if (error)
    return Status::unavailable("cannot start '" + call.program + "': " + std::strerror(error));
  return RunningProgram(process, call.ownsGroup);
}

std::optional<ProgramEnd> RunningProgram::waitForEnd(double limitSeconds) {
  if (process < 0)
    return std::nullopt;
  const auto limit =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limitSeconds));
  int state = 0;
  pid_t ended = 0;
  for (milliseconds pause = kShortestPause; (ended = waitpid(process, &state, WNOHANG)) == 0;
       pause = std::min(2 * pause, kLongestPause)) {
    const auto left = limit - Clock::now();
    if (left <= Clock::duration::zero())
      return std::nullopt;
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
  }
  const bool isOurs = ended == process;
  process = -1;
  if (!isOurs)
    return ProgramEnd{ProgramEnd::kUnknown, 0};
  return WIFSIGNALED(state) ? ProgramEnd{0, WTERMSIG(state)} : ProgramEnd{WEXITSTATUS(state), 0};
}

RunningProgram::~RunningProgram() {
  if (process < 0)
    return;
  kill(ownsGroup ? -process : process, SIGKILL);
  waitForEnd(kKillSeconds);
}

} // namespace heddle
