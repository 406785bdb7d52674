// Owns how two processes of this machine talk: messages of any bytes, each behind its length, over a socket that is the
// child's standard input; and the end of the child, which is killed when its owner lets go of it or dies.
#pragma once

#include "compiler/Measure/RunningProgram.h"
#include "runtime/Core/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// One end of the socket. Closed with the object. Move-only, used by one thread.
class MessageSocket {
public:
  explicit MessageSocket(int descriptor) : descriptor(descriptor) {}
  MessageSocket(MessageSocket &&other) noexcept : descriptor(other.descriptor) { other.descriptor = -1; }
  MessageSocket &operator=(MessageSocket &&) = delete;
  ~MessageSocket();

  /// io: the other side is gone.
  Status send(const std::string &message);
  /// The next message. Nothing: wait for ever. unavailable: none within the limit; io: the other side is gone.
  Result<std::string> receive(std::optional<double> limitSeconds = {});

private:
  int descriptor;
};

/// Its standard output goes where its errors go. A signal of the terminal does not reach it.
class ChildProcess {
public:
  static Result<ChildProcess> start(const std::string &program, const std::vector<std::string> &arguments);

  /// Sends, and waits for the answer. unavailable: no answer within the limit; io: the process ended, and how.
  Result<std::string> ask(const std::string &message, double limitSeconds);
  Status send(const std::string &message);
  Result<std::string> receive(double limitSeconds);

  /// For the child, first thing: it is killed when the process that started it dies.
  static void endWithParent();

private:
  ChildProcess(MessageSocket socket, RunningProgram process) : socket(std::move(socket)), process(std::move(process)) {}
  Status failureOf(const Status &failure);

  MessageSocket socket;
  RunningProgram process; ///< killed with the object
};

} // namespace heddle
