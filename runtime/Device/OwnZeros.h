// Owns the memory of regions that launches find zero and leave zero. In a workspace, which others write meanwhile, they
// are cleared before each launch, a microsecond on the GPU; a prepared call, which runs on one stream at a time, has
// them in memory of its own, cleared once. Internal to runtime/Device.
#pragma once

#include "runtime/Device/LoadedKernel.h"

#include <optional>

namespace heddle {

// A region whose name begins so is zero again when the launch that it lives through has ended.
inline constexpr std::string_view kLeftZero = "zero.";

class OwnZeros {
public:
  // Makes pointers to such regions of the evaluated call point into memory that it returns, and takes their clears out.
  // Without any, and where the driver gives no memory: nothing is changed. Allocates; waits for a stream of its own.
  static std::optional<OwnZeros> give(const LoadedKernel &kernel, const CallInputs &inputs, EvaluatedCall &call);

private:
  explicit OwnZeros(DeviceBuffer memory) : memory(std::move(memory)) {}
  DeviceBuffer memory;
};

} // namespace heddle
