#include "runtime/Device/Driver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

namespace heddle {
namespace {

template <class F> bool resolve(void *library, const char *symbol, F &function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

Status resolveAll(void *library, const std::string &path, Driver &driver) {
  const char *missing = nullptr;
#define HEDDLE_RESOLVE(member, symbol, ...)                                                                            \
  if (!resolve(library, #symbol, driver.member))                                                                       \
    missing = #symbol;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_RESOLVE)
#undef HEDDLE_RESOLVE
#define HEDDLE_RESOLVE(member, symbol, ...) resolve(library, #symbol, driver.member);
  HEDDLE_CUDA_OPTIONAL_FUNCTIONS(HEDDLE_RESOLVE)
#undef HEDDLE_RESOLVE
  if (missing)
    return Status::unavailable("open driver: '" + path + "' has no function " + missing +
                               "; a driver of CUDA 11 or later has it");
  return {};
}

Result<std::unique_ptr<Driver>> openLibrary(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status::unavailable("open driver: cannot open '" + path + "': " + (reason ? reason : "unknown reason") +
                               "; install the NVIDIA driver, or use the CPU target");
  }
  auto driver = std::make_unique<Driver>();
  HEDDLE_TRY(resolveAll(library, path, *driver));
  HEDDLE_TRY(driver->check(driver->init(0), "open driver", "cuInit"));
  HEDDLE_TRY(driver->check(driver->driverGetVersion(&driver->version), "open driver", "cuDriverGetVersion"));
  return driver;
}

} // namespace

Result<const Driver *> Driver::open() {
  const char *named = std::getenv("HEDDLE_CUDA_DRIVER_LIBRARY");
  std::string path = named && *named ? named : "libcuda.so.1";
  static std::mutex mutex;
  static auto *opened = new std::map<std::string, std::unique_ptr<Driver>>; // outlives static destructors
  std::lock_guard<std::mutex> lock(mutex);
  auto found = opened->find(path);
  if (found != opened->end())
    return const_cast<const Driver *>(found->second.get());
  HEDDLE_ASSIGN(std::unique_ptr<Driver> driver, openLibrary(path));
  const Driver *result = driver.get();
  (*opened)[path] = std::move(driver);
  return result;
}

Status Driver::check(cuda::Code code, const char *operation, const char *call) const {
  if (code == cuda::kSuccess)
    return {};
  const char *name = nullptr, *text = nullptr;
  bool isNamed = getErrorName(code, &name) == cuda::kSuccess && name;
  bool isExplained = getErrorString(code, &text) == cuda::kSuccess && text;
  std::string message = std::string(operation) + ": " + call +
                        " failed: " + (isNamed ? name : "error " + std::to_string(code)) +
                        (isExplained ? " (" + std::string(text) + ")" : "");
  bool isEnvironment = code == cuda::kErrorNoDevice || code == cuda::kErrorOutOfMemory;
  return {isEnvironment ? StatusCode::unavailable : StatusCode::internal, message};
}

} // namespace heddle
