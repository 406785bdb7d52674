#include "runtime/Distributed/NcclLibrary.h"

#include "runtime/Core/SafeText.h"

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

namespace heddle {
namespace {

constexpr const char *kSoname = "libnccl.so.2";

struct FoundLibrary {
  void *handle = nullptr;
  std::string path, reason;
};

FoundLibrary load(const std::string &path, int flags) {
  FoundLibrary found{dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags), path, ""};
  if (!found.handle) {
    const char *reason = dlerror();
    found.reason = reason ? reason : "unknown reason";
  }
  return found;
}

FoundLibrary find(const std::string &named) {
  if (!named.empty())
    return load(named, 0);
  FoundLibrary loaded = load(kSoname, RTLD_NOLOAD);
  return loaded.handle ? loaded : load(kSoname, 0);
}

template <class F> bool resolve(void *library, const char *symbol, F &function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

Status resolveAll(void *library, NcclLibrary &nccl) {
  const char *missing = nullptr;
#define HEDDLE_RESOLVE(member, symbol, ...)                                                                            \
  if (!resolve(library, #symbol, nccl.member))                                                                         \
    missing = #symbol;
  HEDDLE_NCCL_FUNCTIONS(HEDDLE_RESOLVE)
#undef HEDDLE_RESOLVE
#define HEDDLE_RESOLVE(member, symbol, ...) resolve(library, #symbol, nccl.member);
  HEDDLE_NCCL_OPTIONAL_FUNCTIONS(HEDDLE_RESOLVE)
  HEDDLE_NCCL_TEXTS(HEDDLE_RESOLVE)
#undef HEDDLE_RESOLVE
  if (!nccl.getErrorString)
    missing = "ncclGetErrorString";
  if (missing)
    return Status::unavailable("open NCCL: '" + nccl.path + "' has no function " + missing +
                               "; NCCL 2.7 or later has it, 2.14 or later makes communicators");
  return {};
}

Result<std::unique_ptr<NcclLibrary>> openLibrary(const std::string &named) {
  const FoundLibrary found = find(named);
  if (!found.handle)
    return Status::unavailable("open NCCL: cannot open '" + found.path + "': " + found.reason +
                               "; install NCCL (the package libnccl2, or the wheel nvidia-nccl-cu13 or -cu12), or set "
                               "HEDDLE_NCCL_LIBRARY to its libnccl.so.2; a process that has imported PyTorch has it");
  auto nccl = std::make_unique<NcclLibrary>();
  nccl->path = found.path;
  HEDDLE_TRY(resolveAll(found.handle, *nccl));
  HEDDLE_TRY(nccl->check(nccl->getVersion(&nccl->version), "open NCCL", "ncclGetVersion"));
  return nccl;
}

StatusCode statusCodeOf(nccl::Code code) {
  switch (code) {
  case nccl::kSystemError:
  case nccl::kRemoteError:
    return StatusCode::unavailable;
  case nccl::kInvalidArgument:
  case nccl::kInvalidUsage:
    return StatusCode::invalidArgument;
  default:
    return StatusCode::internal;
  }
}

} // namespace

Result<const NcclLibrary *> NcclLibrary::open() {
  const char *given = std::getenv("HEDDLE_NCCL_LIBRARY");
  const std::string named = given ? given : "";
  static std::mutex mutex;
  static auto *opened = new std::map<std::string, std::unique_ptr<NcclLibrary>>; // outlives static destructors
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<NcclLibrary> &entry = (*opened)[named];
  if (!entry) {
    HEDDLE_ASSIGN(entry, openLibrary(named));
  }
  return const_cast<const NcclLibrary *>(entry.get());
}

Status NcclLibrary::check(nccl::Code code, const char *operation, const char *call,
                          nccl::Communicator communicator) const {
  if (code == nccl::kSuccess || code == nccl::kInProgress)
    return {};
  const char *text = getErrorString(code), *detail = getLastError ? getLastError(communicator) : nullptr;
  std::string message =
      std::string(operation) + ": " + call + " failed: " + (text ? text : "error " + std::to_string(code));
  if (detail && *detail)
    message += " (" + safeLine(detail, kMostLineBytes) + ")";
  return {statusCodeOf(code), message};
}

std::string NcclLibrary::versionText() const {
  const int major = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

} // namespace heddle
