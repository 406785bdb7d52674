#include "runtime/Distributed/StepLog.h"

namespace heddle {

Result<DeviceEvent> StepLog::takeEvent() {
  if (spare.empty())
    return DeviceEvent::create(device);
  DeviceEvent event = std::move(spare.back());
  spare.pop_back();
  return event;
}

Status StepLog::begin(std::vector<int32_t> peers, cuda::Stream stream) {
  HEDDLE_ASSIGN(DeviceEvent begin, takeEvent());
  HEDDLE_ASSIGN(DeviceEvent end, takeEvent());
  HEDDLE_TRY(begin.record(stream));
  steps.push_back({count++, std::move(peers), std::move(begin), std::move(end)});
  return {};
}

Status StepLog::end(cuda::Stream stream) { return steps.back().end.record(stream); }

Result<bool> StepLog::update() {
  bool hasChanged = false;
  while (!steps.empty()) {
    LoggedStep &oldest = steps.front();
    if (!oldest.hasBegun) {
      HEDDLE_ASSIGN(oldest.hasBegun, oldest.begin.waitFor(0));
      if (!oldest.hasBegun)
        break;
      hasChanged = true;
    }
    HEDDLE_ASSIGN(const bool isDone, oldest.end.waitFor(0));
    if (!isDone)
      break;
    hasChanged = true;
    spare.push_back(std::move(oldest.begin));
    spare.push_back(std::move(oldest.end));
    steps.pop_front();
  }
  return hasChanged;
}

} // namespace heddle
