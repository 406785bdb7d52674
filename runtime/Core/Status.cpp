#include "runtime/Core/Status.h"

namespace heddle {

const char *statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::ok:
    return "ok";
  case StatusCode::invalidArgument:
    return "invalidArgument";
  case StatusCode::notFound:
    return "notFound";
  case StatusCode::unsupported:
    return "unsupported";
  case StatusCode::unavailable:
    return "unavailable";
  case StatusCode::corrupt:
    return "corrupt";
  case StatusCode::newer:
    return "newer";
  case StatusCode::io:
    return "io";
  case StatusCode::denied:
    return "denied";
  case StatusCode::internal:
    return "internal";
  }
  return "internal";
}

std::string Status::str() const {
  if (isOk())
    return "ok";
  return std::string(statusCodeName(statusCode)) + ": " + text;
}

} // namespace heddle
