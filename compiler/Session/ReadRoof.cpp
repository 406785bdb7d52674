#include "compiler/Session/ReadRoof.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {

const std::vector<EmbeddedFile> &sessionSources(); // read_kernel.cuh

namespace {

constexpr const char *kWhat = "read of memory";
constexpr int64_t kBytes = int64_t(1) << 30;
// As read_kernel.cuh has them.
constexpr int64_t kThreads = 512, kLoads = 8, kLoadBytes = 16;
constexpr int64_t kBlocksPerSm = 4; // as many threads as an SM holds

int64_t blocksOn(const Device &device) { return std::max<int64_t>(1, device.info().identity.smCount) * kBlocksPerSm; }

KernelSource readKernelSource() {
  KernelSource source;
  source.name = "read_kernel.cu";
  source.text = sessionSources().front().text;
  return source;
}

} // namespace

Result<ReadRoof> ReadRoof::create(const Device &device, const std::string &arch) {
  HEDDLE_ASSIGN(const Cubin cubin, compile(readKernelSource(), arch));
  const int64_t step = blocksOn(device) * kThreads * kLoads * kLoadBytes;
  HEDDLE_ASSIGN(DeviceBuffer memory, DeviceBuffer::allocate(device, std::max(step, kBytes / step * step)));
  HEDDLE_ASSIGN(DeviceBuffer kept, DeviceBuffer::allocate(device, sizeof(uint32_t)));
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  HEDDLE_TRY(state.driver->check(state.driver->moduleLoadDataEx(&module, cubin.cubin.data(), 0, nullptr, nullptr),
                                 kWhat, "cuModuleLoadDataEx"));
  HEDDLE_TRY(state.driver->check(state.driver->moduleGetFunction(&function, module, kKernelEntry), kWhat,
                                 "cuModuleGetFunction"));
  return ReadRoof(device, function, std::move(memory), std::move(kept));
}

Status ReadRoof::launch() const {
  uint64_t from = memory.address(), count = uint64_t(memory.bytes() / kLoadBytes), to = kept.address();
  void *pointers[] = {&from, &count, &to};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->launchKernel(function, unsigned(blocksOn(device)), 1, 1, unsigned(kThreads),
                                                        1, 1, 0, nullptr, pointers, nullptr),
                             kWhat, "cuLaunchKernel");
}

} // namespace heddle
