// Owns a prepared call's clears and kernels as one executable CUDA graph. On a GPU of 2026 launching it takes the host
// a third of the time of launching a kernel (bench/results, heddle-host-cost). Internal to runtime/Device.
#pragma once

#include "runtime/Device/LoadedKernel.h"

#include <atomic>

namespace heddle {

// The driver keeps about 113 KB of device memory for each graph: so many of a context, the other prepared calls go
// without.
constexpr int kMaxGraphs = 64;

class LaunchGraph {
public:
  // Null if the driver makes none, or there are enough of them already. The kernel outlives it. Allocates.
  static std::unique_ptr<LaunchGraph> make(const LoadedKernel &kernel, const EvaluatedCall &call);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph &) = delete;
  LaunchGraph &operator=(const LaunchGraph &) = delete;

  // False: nothing was launched, and the kernels one by one do it or say why not. So while the stream is captured, for
  // a stream of another context, and while another thread launches the same call.
  bool launch(cuda::Stream stream) const;

private:
  explicit LaunchGraph(DeviceState &state) : state(state) {}
  DeviceState &state;
  cuda::GraphExec executable = nullptr;
  mutable std::atomic_flag isLaunching = ATOMIC_FLAG_INIT; // graphs are not synchronised by the driver
};

} // namespace heddle
