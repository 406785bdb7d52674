#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/SafeText.h"

#include <iostream>

namespace heddle::cli {

int exitCodeOf(const Status &status) {
  switch (status.code()) {
  case StatusCode::ok:
    return Ok;
  case StatusCode::invalidArgument:
  case StatusCode::notFound:
  case StatusCode::unsupported:
  case StatusCode::corrupt:
  case StatusCode::newer:
    return BadInput;
  case StatusCode::unavailable:
  case StatusCode::io:
  case StatusCode::denied:
  case StatusCode::internal:
    return Environment;
  }
  return Environment;
}

/// Diagnostics of an author's text come rendered: "file:line:column: error: ...".
static bool isRendered(const std::string &message) {
  size_t lineEnd = message.find('\n');
  return message.substr(0, lineEnd).find(": error: ") != std::string::npos;
}

static int failWith(const Status &status, int exitCode) {
  std::cout.flush();
  std::cerr << (isRendered(status.message()) ? "" : "heddle: error: ") << safeMessage(status.message()) << '\n';
  recordFailure(status, exitCode);
  return exitCode;
}

int fail(const Status &status) { return failWith(status, exitCodeOf(status)); }

int failUsage(const Status &status) { return failWith(status, Usage); }

int failNames(const Status &status) { return status.code() == StatusCode::notFound ? failUsage(status) : fail(status); }

int finish(const Status &status) { return status.isOk() ? Ok : fail(status); }

} // namespace heddle::cli
