// Owns an event behind what streams had to do when they were noted. Those that were reached are forgotten before one of another
// stream is made: callers may have ever new streams. Who shares one guards it; the events that it gives are waited for without.
#pragma once

#include "runtime/Device/Device.h"

#include <map>
#include <vector>

namespace heddle {

class StreamEnds {
public:
  // Where no event can be had, the stream is not waited for.
  void note(const Device &device, cuda::Stream stream);
  std::vector<std::shared_ptr<const DeviceEvent>> all() const;

private:
  void forgetReached();
  Status tryToNote(const Device &device, cuda::Stream stream);

  std::map<cuda::Stream, std::shared_ptr<DeviceEvent>> ends;
};

} // namespace heddle
