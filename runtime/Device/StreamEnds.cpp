#include "runtime/Device/StreamEnds.h"

#include "runtime/Device/DeviceState.h"

namespace heddle {

void StreamEnds::note(const Device &device, cuda::Stream stream) {
  if (!tryToNote(device, stream).isOk())
    ends.erase(stream);
}

Status StreamEnds::tryToNote(const Device &device, cuda::Stream stream) {
  auto end = ends.find(stream);
  if (end == ends.end()) {
    const RelaxedCapture relaxed(*device.state()->driver); // for the questions and the new event
    forgetReached();
    HEDDLE_ASSIGN(DeviceEvent event, DeviceEvent::create(device));
    end = ends.emplace(stream, std::make_shared<DeviceEvent>(std::move(event))).first;
  }
  return end->second->record(stream);
}

void StreamEnds::forgetReached() {
  for (auto end = ends.begin(); end != ends.end();) {
    const Result<bool> isReached = end->second->waitFor(0);
    end = isReached && !*isReached ? std::next(end) : ends.erase(end);
  }
}

std::vector<std::shared_ptr<const DeviceEvent>> StreamEnds::all() const {
  std::vector<std::shared_ptr<const DeviceEvent>> events;
  for (const auto &[stream, event] : ends)
    events.push_back(event);
  return events;
}

} // namespace heddle
