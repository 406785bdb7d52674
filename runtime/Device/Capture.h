// Owns the question whether work of a stream goes into a graph of the driver: then nothing may be waited for, and events of
// it say nothing.
#pragma once

#include "runtime/Device/Driver.h"

namespace heddle {

inline bool isCaptured(const Driver &driver, cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  return driver.streamIsCapturing && driver.streamIsCapturing(stream, &capture) == cuda::kSuccess &&
         capture != cuda::kCaptureStatusNone;
}

} // namespace heddle
