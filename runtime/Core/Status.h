// Owns the closed set of error codes of everything that ships. A message names the operation, the
// object and what would work; it ends without a full stop and never holds a newline of its own.
// The numbers are part of the C ABI (runtime/Include/heddle.h): append, never renumber.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

enum class StatusCode : int {
  ok = 0,
  invalidArgument = 1, // the caller passed something that no kernel or file can accept
  notFound = 2,        // the named thing does not exist
  unsupported = 3,     // well formed, but nothing here serves it
  unavailable = 4,     // the environment lacks something: driver, GPU, compiler library
  corrupt = 5,         // stored data fails its own checks; it was left as it is
  newer = 6,           // written by a newer version of this project; it was left as it is
  io = 7,              // the operating system refused: disk full, unreadable, busy
  denied = 8,          // refused for safety; the message says how to allow it
  internal = 9,        // a bug of this project, or a driver failure during a launch
};

// The identifier of a code as spelled above ("invalidArgument"); "internal" for unknown numbers.
const char *statusCodeName(StatusCode code);

// A value: copyable, no shared state. An ok status holds no message and never allocates.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : statusCode(code), text(std::move(message)) {}

  static Status invalidArgument(std::string message) { return {StatusCode::invalidArgument, std::move(message)}; }
  static Status notFound(std::string message) { return {StatusCode::notFound, std::move(message)}; }
  static Status unsupported(std::string message) { return {StatusCode::unsupported, std::move(message)}; }
  static Status unavailable(std::string message) { return {StatusCode::unavailable, std::move(message)}; }
  static Status corrupt(std::string message) { return {StatusCode::corrupt, std::move(message)}; }
  static Status newer(std::string message) { return {StatusCode::newer, std::move(message)}; }
  static Status io(std::string message) { return {StatusCode::io, std::move(message)}; }
  static Status denied(std::string message) { return {StatusCode::denied, std::move(message)}; }
  static Status internal(std::string message) { return {StatusCode::internal, std::move(message)}; }

  bool isOk() const { return statusCode == StatusCode::ok; }
  StatusCode code() const { return statusCode; }
  const std::string &message() const { return text; }
  // "notFound: no kernel ...", or "ok".
  std::string str() const;

private:
  StatusCode statusCode = StatusCode::ok;
  std::string text;
};

// A T or the reason why there is none. Dereferencing a failed result is a bug of the caller.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status failure) : failure(std::move(failure)) {
    assert(!this->failure.isOk() && "a result without a value needs a failure");
  }

  bool isOk() const { return content.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status &status() const { return failure; }

  T &operator*() & {
    assert(isOk());
    return *content;
  }
  const T &operator*() const & {
    assert(isOk());
    return *content;
  }
  T &&operator*() && {
    assert(isOk());
    return std::move(*content);
  }
  T *operator->() {
    assert(isOk());
    return &*content;
  }
  const T *operator->() const {
    assert(isOk());
    return &*content;
  }
  T take() {
    assert(isOk());
    return std::move(*content);
  }

private:
  Status failure;
  std::optional<T> content;
};

} // namespace heddle

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)

// Leaves the function with the failure of `expression` (a Status), if it has one.
#define HEDDLE_TRY(expression)                                                                                         \
  do {                                                                                                                 \
    ::heddle::Status heddleTryStatus = (expression);                                                                   \
    if (!heddleTryStatus.isOk())                                                                                       \
      return heddleTryStatus;                                                                                          \
  } while (false)

// Declares `target` from the value of `expression` (a Result), or leaves with its failure.
#define HEDDLE_ASSIGN(target, expression) HEDDLE_ASSIGN_INNER(HEDDLE_CONCAT(heddleResult, __LINE__), target, expression)
#define HEDDLE_ASSIGN_INNER(name, target, expression)                                                                  \
  auto name = (expression);                                                                                            \
  if (!name.isOk())                                                                                                    \
    return name.status();                                                                                              \
  target = name.take()
