// Owns a compiler of libheddle over the recording driver and an NVRTC that counts, for tests of the kernels it finds.
#ifndef HEDDLE_TESTS_UNIT_LIBRARY_SESSION_H
#define HEDDLE_TESTS_UNIT_LIBRARY_SESSION_H

#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "fake_cuda/FakeCuda.h"
#include "library_fixture.h"

#include <cstdlib>
#include <string>

extern "C" int counting_nvrtc_compilations(void);

namespace heddle::test {

// The recording driver, and NVRTC that counts; false says why a test is skipped.
inline bool start() {
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", places().fakeCuda, 1);
  heddle::fake::fakeCudaReset();
  heddle::fake::fakeCudaSetCurrent(-1);
  static const auto real = heddle::NvrtcLibrary::open(heddle::NvrtcSearch::fromEnvironment());
  if (!real.isOk()) {
    MESSAGE("skipped: " << real.status().message());
    return false;
  }
  setenv("HEDDLE_REAL_NVRTC", (*real)->loadedFile().c_str(), 1);
  setenv("HEDDLE_NVRTC_LIBRARY", places().countingNvrtc, 1);
  return true;
}

inline DeviceHandle openDevice() {
  heddle_device *device = nullptr;
  CHECK_OK(heddle_device_open(0, &device));
  return DeviceHandle(device);
}

struct Session {
  ScratchFolder folder;
  std::string database = folder / "kernels.db";
  PatternHandle pattern = parse(kWindowText);
  DeviceHandle device = openDevice();
  CompilerHandle compiler;

  explicit Session(uint32_t flags = 0) : compiler(openCompiler(database, flags)) {}

  heddle_status find(uint32_t flags, KernelHandle &kernel, const heddle_problem &problem = smallProblem()) {
    heddle_kernel *found = nullptr;
    heddle_status status = heddle_compiler_kernel(compiler.get(), device.get(), pattern.get(), &problem, flags, &found);
    kernel.reset(found);
    return status;
  }
  KernelHandle found(uint32_t flags, const heddle_problem &problem = smallProblem()) {
    KernelHandle kernel;
    CHECK_OK(find(flags, kernel, problem));
    return kernel;
  }
};

} // namespace heddle::test

#endif
