#include "compiler/Session/TuneHere.h"

namespace heddle {

Result<std::vector<SweepGpu>> gpusHere(const std::vector<int> &ordinals) {
  std::vector<int> numbers = ordinals;
  if (numbers.empty()) {
    HEDDLE_ASSIGN(int count, Device::count());
    for (int i = 0; i < count; ++i)
      numbers.push_back(i);
  }
  std::vector<SweepGpu> gpus;
  for (int ordinal : numbers) {
    HEDDLE_ASSIGN(Device device, Device::open(ordinal));
    gpus.push_back({ordinal, device.info().identity.deviceName});
  }
  return gpus;
}

Result<TuneOutcome> tuneHere(const PatternFile &file, const TuneRequest &request, Store &store) {
  HEDDLE_ASSIGN(Device device, Device::open());
  return tune(file, request, device, store);
}

} // namespace heddle
