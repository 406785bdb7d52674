#include "compiler/Stream/RandomKernel.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {

const std::vector<EmbeddedFile> &streamSources(); // random_kernel.cuh and what it includes

namespace {

constexpr const char *kWhat = "random rows";

/// The layout of heddle_random::Block.
struct Block {
  uint64_t base, first, width, rows, rowStep, batchStep, elements;
};

int elementNumber(DType dtype) { return dtype == DType::fp32 ? 0 : dtype == DType::bf16 ? 1 : 2; }

} // namespace

KernelSource randomKernelSource(DType dtype) {
  KernelSource source;
  source.name = "random_kernel.cu";
  for (const EmbeddedFile &file : streamSources())
    if (file.name == "random_kernel.cuh")
      source.text = file.text;
    else
      source.headers.push_back({std::string(file.name), std::string(file.text)});
  source.options.push_back("-DkElement=" + std::to_string(elementNumber(dtype)));
  return source;
}

bool isMadeOnDevice(DType dtype) { return dtype == DType::fp32 || dtype == DType::bf16 || dtype == DType::fp16; }

Result<RandomKernel> RandomKernel::compile(const Device &device, const std::string &arch, DType dtype) {
  HEDDLE_ASSIGN(const Cubin cubin, heddle::compile(randomKernelSource(dtype), arch));
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  HEDDLE_TRY(state.driver->check(state.driver->moduleLoadDataEx(&module, cubin.cubin.data(), 0, nullptr, nullptr),
                                 kWhat, "cuModuleLoadDataEx"));
  HEDDLE_TRY(state.driver->check(state.driver->moduleGetFunction(&function, module, kKernelEntry), kWhat,
                                 "cuModuleGetFunction"));
  return RandomKernel(device, function);
}

Status RandomKernel::make(const RandomRows &source, const RowBlock &block, char *to, cuda::Stream stream) const {
  constexpr int64_t kThreads = 256, kPerThread = 8, kMostBlocks = 1 << 20;
  const int64_t rowElements = source.headsOf(block.role) * source.dimOf(block.role);
  const int64_t width = block.heads * source.dimOf(block.role);
  const bool isOneRun = block.rows.rate == 1 && width == rowElements;
  const int64_t elements = block.batches * block.rows.count * width;
  if (!elements)
    return {};
  uint64_t address = reinterpret_cast<uintptr_t>(to);
  Block made = {source.streamOf(block.role).start(),
                uint64_t(source.firstElement(block)),
                uint64_t(isOneRun ? block.rows.count * width : width),
                uint64_t(isOneRun ? 1 : block.rows.count),
                uint64_t(block.rows.rate * rowElements),
                uint64_t(source.sizes.of(specOf(block.role).rows) * rowElements),
                uint64_t(elements)};
  void *pointers[] = {&address, &made};
  const int64_t blocks = (elements + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  return state.driver->check(state.driver->launchKernel(function, unsigned(std::min(blocks, kMostBlocks)), 1, 1,
                                                        unsigned(kThreads), 1, 1, 0, stream, pointers, nullptr),
                             kWhat, "cuLaunchKernel");
}

} // namespace heddle
