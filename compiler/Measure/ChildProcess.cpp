#include "compiler/Measure/ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

constexpr uint64_t kLongestMessage = uint64_t(1) << 31;
constexpr double kLeaveSeconds = 5; ///< that a process which closed its socket takes to end

Status gone() { return Status::io("the other process is gone"); }

Deadline deadlineAfter(std::optional<double> seconds) {
  if (!seconds)
    return {};
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
}

/// Milliseconds as poll takes them, rounded up; -1 for ever.
int millisecondsUntil(const Deadline &deadline) {
  if (!deadline)
    return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

Status receiveBytes(int descriptor, char *to, size_t bytes, const Deadline &deadline) {
  while (bytes > 0) {
    pollfd waited{descriptor, POLLIN, 0};
    const int count = poll(&waited, 1, millisecondsUntil(deadline));
    if (count == 0)
      return Status::unavailable("no answer in time");
    const ssize_t got = count < 0 ? -1 : recv(descriptor, to, bytes, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return gone();
    to += got;
    bytes -= size_t(got);
  }
  return Status();
}

Status sendBytes(int descriptor, const char *from, size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return gone();
    from += sent;
    bytes -= size_t(sent);
  }
  return Status();
}

} // namespace

MessageSocket::~MessageSocket() {
  if (descriptor >= 0)
    close(descriptor);
}

Status MessageSocket::send(const std::string &message) {
  const uint64_t length = message.size();
  HEDDLE_TRY(sendBytes(descriptor, reinterpret_cast<const char *>(&length), sizeof length));
  return sendBytes(descriptor, message.data(), message.size());
}

Result<std::string> MessageSocket::receive(std::optional<double> limitSeconds) {
  const Deadline deadline = deadlineAfter(limitSeconds);
  uint64_t length = 0;
  HEDDLE_TRY(receiveBytes(descriptor, reinterpret_cast<char *>(&length), sizeof length, deadline));
  if (length > kLongestMessage)
    return Status::io("the other process sends what is no message");
  std::string message(length, '\0');
  HEDDLE_TRY(receiveBytes(descriptor, message.data(), message.size(), deadline));
  return message;
}

Result<ChildProcess> ChildProcess::start(const std::string &program, const std::vector<std::string> &arguments) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::io(std::string("no socket to talk with another process: ") + std::strerror(errno));
  MessageSocket here(ends[0]), there(ends[1]);
  ProgramCall call{program, arguments};
  call.ownsGroup = true;
  ProgramFiles files;
  files.copy(ends[1], STDIN_FILENO).copy(STDERR_FILENO, STDOUT_FILENO);
  HEDDLE_ASSIGN(RunningProgram process, RunningProgram::start(call, files));
  return ChildProcess(std::move(here), std::move(process));
}

Status ChildProcess::send(const std::string &message) { return failureOf(socket.send(message)); }

Result<std::string> ChildProcess::receive(double limitSeconds) {
  Result<std::string> answer = socket.receive(limitSeconds);
  if (answer)
    return answer;
  return failureOf(answer.status());
}

Result<std::string> ChildProcess::ask(const std::string &message, double limitSeconds) {
  HEDDLE_TRY(send(message));
  return receive(limitSeconds);
}

/// How the process ended, where that is why it does not answer.
Status ChildProcess::failureOf(const Status &failure) {
  if (failure.code() != StatusCode::io)
    return failure;
  const std::optional<ProgramEnd> end = process.waitForEnd(kLeaveSeconds);
  return end ? Status::io("its process " + end->str()) : failure;
}

void ChildProcess::endWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL); // one that died before is noticed at the socket
}

} // namespace heddle
