#include "runtime/Core/KernelImages.h"
#include "runtime/Device/LoadedKernel.h"

namespace heddle {
namespace {

std::string describe(const KernelRecord &record) { return "load kernel " + record.contentKey.substr(0, 12) + ": "; }

// Which of the record's codes this GPU takes.
struct Code {
  const std::string *image = nullptr;
  bool isPtx = false;
};

Result<Code> chooseCode(const DeviceInfo &info, const KernelRecord &record) {
  const std::string &arch = info.identity.arch;
  bool cubinRuns = !record.cubin.empty() && kernelRunsOn(record.kernelArch, arch);
  bool ptxRuns = !record.ptx.empty() && kernelRunsOn(virtualArch(record.kernelArch), arch);
  if (cubinRuns && info.driverVersion >= record.minDriver)
    return Code{&record.cubin, false};
  if (ptxRuns && info.driverVersion >= record.minDriver)
    return Code{&record.ptx, true};
  if (cubinRuns || ptxRuns)
    return Status::unsupported(describe(record) + "needs a driver for CUDA version " +
                               std::to_string(record.minDriver) + " or later, this is " +
                               std::to_string(info.driverVersion) + "; update the driver");
  return Status::unsupported(describe(record) + "was compiled for " + record.kernelArch +
                             (record.ptx.empty() ? " without PTX" : "") + ", this GPU is " + arch +
                             "; compile the pattern for " + arch);
}

Status loadModule(const Driver &driver, const std::string &operation, std::string_view image, LoadedCode &code) {
  char log[4096] = {};
  int options[] = {cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBufferBytes};
  void *values[] = {log, reinterpret_cast<void *>(uintptr_t(sizeof(log) - 1))};
  // std::string keeps a terminating zero behind its bytes, joinImages one behind each image: PTX needs it.
  cuda::Code result = driver.moduleLoadDataEx(&code.module, image.data(), 2, options, values);
  if (result == cuda::kSuccess)
    return {};
  Status failure = driver.check(result, operation.c_str(), "cuModuleLoadDataEx");
  std::string message = failure.message() + (log[0] ? "; driver log: " + std::string(log) : "");
  bool isUnreadable = result == cuda::kErrorInvalidImage || result == cuda::kErrorInvalidPtx;
  bool isUnsupported = result == cuda::kErrorNoBinaryForGpu || result == cuda::kErrorUnsupportedPtxVersion;
  return {isUnreadable ? StatusCode::corrupt : isUnsupported ? StatusCode::unsupported : failure.code(), message};
}

Status prepareFunction(const LoadedKernel &kernel, const std::string &operation, const std::string &entry,
                       cuda::Module module, LoadedCode &code) {
  const Driver &driver = *kernel.device.state()->driver;
  const char *what = operation.c_str();
  HEDDLE_TRY(
      driver.check(driver.moduleGetFunction(&code.function, module, entry.c_str()), what, "cuModuleGetFunction"));
  int staticShared = 0, threads = 0;
  HEDDLE_TRY(driver.check(driver.funcGetAttribute(&staticShared, cuda::kFunctionSharedBytes, code.function), what,
                          "cuFuncGetAttribute"));
  HEDDLE_TRY(driver.check(driver.funcGetAttribute(&threads, cuda::kFunctionMaxThreadsPerBlock, code.function), what,
                          "cuFuncGetAttribute"));
  code.blockLimit = threads;
  code.dynamicSharedLimit = kernel.device.info().sharedBytesPerBlock - staticShared;
  return driver.check(
      driver.funcSetAttribute(code.function, cuda::kFunctionMaxDynamicSharedBytes, int(code.dynamicSharedLimit)), what,
      "cuFuncSetAttribute");
}

size_t clearCountOf(const LaunchPlan &plan) {
  size_t count = 0;
  for (const KernelLaunch &launch : plan.launches)
    count += launch.clears.size();
  return count;
}

bool hasTensorMaps(const LaunchPlan &plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(),
                     [](const KernelLaunch &launch) { return !launch.tensorMaps.empty(); });
}

Status readPlan(const KernelRecord &record, LoadedKernel &kernel) {
  Result<LaunchPlan> plan = LaunchPlan::parse(record.plan);
  if (!plan)
    return Status::corrupt(describe(record) + plan.status().message());
  kernel.plan = plan.take();
  if (const size_t clears = clearCountOf(kernel.plan); clears > size_t(kMaxClears))
    return Status::unsupported(describe(record) + "this runtime makes at most " + std::to_string(kMaxClears) +
                               " clears a call, the plan has " + std::to_string(clears));
  kernel.hasTensorMaps = hasTensorMaps(kernel.plan);
  if (kernel.hasTensorMaps && !kernel.device.state()->driver->tensorMapEncodeTiled)
    return Status::unsupported(
        describe(record) + "needs cuTensorMapEncodeTiled, which this driver has not; update it to CUDA 12 or later");
  HEDDLE_ASSIGN(kernel.needs, CallRequirements::of(kernel.plan, kernel.record));
  return {};
}

Result<std::shared_ptr<LoadedKernel>> loadFresh(const Device &device, const KernelRecord &record) {
  const Driver &driver = *device.state()->driver;
  auto kernel = std::make_shared<LoadedKernel>(device);
  kernel->record = record;
  kernel->record.cubin.clear();
  kernel->record.ptx.clear();
  kernel->row = &Counters::get().row(
      {record.contentKey, record.pattern, record.kind, device.info().identity.deviceName, device.info().pciBusId});
  HEDDLE_TRY(readPlan(record, *kernel));
  HEDDLE_ASSIGN(Code code, chooseCode(device.info(), record));
  kernel->isJitCompiled = code.isPtx;
  HEDDLE_ASSIGN(std::vector<std::string_view> images, splitImages(*code.image, kernel->plan.launches.size()));
  std::string operation = "load kernel " + record.contentKey.substr(0, 12);
  ContextScope scope(*device.state());
  HEDDLE_TRY(scope.status(operation.c_str()));
  const RelaxedCapture relaxed(driver);
  for (size_t i = 0; i < kernel->plan.launches.size(); ++i) {
    LoadedCode &loaded = kernel->codes.emplace_back();
    if (i < images.size())
      HEDDLE_TRY(loadModule(driver, operation, images[i], loaded));
    const cuda::Module module = loaded.module ? loaded.module : kernel->codes.front().module;
    HEDDLE_TRY(prepareFunction(*kernel, operation, kernel->plan.launches[i].entry, module, loaded));
  }
  return kernel;
}

void forgetClosed(std::map<std::string, std::weak_ptr<LoadedKernel>> &kernels) {
  for (auto kernel = kernels.begin(); kernel != kernels.end();)
    kernel = kernel->second.expired() ? kernels.erase(kernel) : std::next(kernel);
}

} // namespace

LoadedKernel::~LoadedKernel() {
  if (codes.empty() || device.state()->isAbandoned)
    return;
  ContextScope scope(*device.state());
  const RelaxedCapture relaxed(*device.state()->driver);
  for (const LoadedCode &code : codes)
    if (code.module)
      device.state()->driver->moduleUnload(code.module);
}

Result<Kernel> Kernel::load(const Device &device, const KernelRecord &record) {
  if (record.contentKey.empty())
    return Status::invalidArgument("load kernel: the record has no content key");
  DeviceState &state = *device.state();
  std::lock_guard<std::mutex> lock(state.kernelsMutex);
  if (auto known = state.kernels.find(record.contentKey); known != state.kernels.end())
    if (std::shared_ptr<LoadedKernel> existing = known->second.lock())
      return Kernel(std::move(existing));
  HEDDLE_ASSIGN(std::shared_ptr<LoadedKernel> kernel, loadFresh(device, record));
  forgetClosed(state.kernels);
  state.kernels[record.contentKey] = kernel;
  return Kernel(std::move(kernel));
}

const KernelRecord &Kernel::record() const { return loaded->record; }
const LaunchPlan &Kernel::plan() const { return loaded->plan; }
const Device &Kernel::device() const { return loaded->device; }
bool Kernel::isJitCompiled() const { return loaded->isJitCompiled; }

} // namespace heddle
