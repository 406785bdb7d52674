#include "compiler/Io/Memory.h"
#include "runtime/Core/ReadFile.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

std::string systemText(const std::string &path) {
  Result<std::string> text = readTextFile(path, {"file of the system"});
  return text ? text.take() : "";
}

// The number behind `key` at the beginning of a line, or nothing known.
int64_t numberIn(const std::string &text, const std::string &key) {
  const std::string lines = "\n" + text;
  const size_t at = lines.find("\n" + key);
  return at == std::string::npos ? kUnknown : std::strtoll(lines.c_str() + at + 1 + key.size(), nullptr, 10);
}

int64_t leftOfMachine() {
  const std::string text = systemText("/proc/meminfo");
  const int64_t available = numberIn(text, "MemAvailable:"), swap = numberIn(text, "SwapFree:");
  return available == kUnknown ? kUnknown : (available + (swap == kUnknown ? 0 : swap)) * 1024;
}

// Those of a control group (version 2) and above it; caches of files are given back when memory is wanted, so they do
// not count.
int64_t leftOfControlGroups() {
  const std::string groups = systemText("/proc/self/cgroup");
  const size_t at = ("\n" + groups).find("\n0::/");
  if (at == std::string::npos)
    return kUnknown;
  std::string path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  int64_t left = kUnknown;
  for (;; path.erase(path.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + path, most = systemText(folder + "/memory.max");
    const int64_t limit = most.empty() || most[0] == 'm' ? kUnknown : std::strtoll(most.c_str(), nullptr, 10);
    if (const int64_t held = numberIn(systemText(folder + "/memory.stat"), "anon ");
        limit != kUnknown && held != kUnknown)
      left = std::min(left, std::max<int64_t>(0, limit - held));
    if (path.find('/') == std::string::npos)
      return left;
  }
}

int64_t pagesHeld(int column) {
  long long pages[2] = {0, 0};
  std::sscanf(systemText("/proc/self/statm").c_str(), "%lld %lld", &pages[0], &pages[1]);
  return pages[column] * ::sysconf(_SC_PAGESIZE);
}

int64_t leftOfAddresses() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return kUnknown;
  return std::max<int64_t>(0, int64_t(limit.rlim_cur) - pagesHeld(0));
}

} // namespace

int64_t availableMemory() { return std::min({leftOfMachine(), leftOfControlGroups(), leftOfAddresses()}); }

std::string memoryText(double bytes) {
  const char *units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 6; ++unit)
    bytes /= 1000;
  char text[64];
  std::snprintf(text, sizeof text, "%.3g %s", bytes, units[unit]);
  return text;
}

Status checkMemory(const std::string &what, double bytes, const std::string &advice) {
  const int64_t left = availableMemory();
  if (bytes <= double(left))
    return {};
  return Status::unavailable(what + ": " + memoryText(bytes) + " of memory are needed, " + memoryText(double(left)) +
                             " are left" + (left == leftOfAddresses() ? " (ulimit -v)" : "") + ": " + advice);
}

Status outOfMemory(const std::string &advice) {
  const int64_t left = availableMemory();
  return Status::unavailable("out of memory: this process holds " + memoryText(double(pagesHeld(1))) +
                             (left == kUnknown ? "" : ", " + memoryText(double(left)) + " are left") + ": " + advice);
}

} // namespace heddle
