// The kernel's own call places pages (mbind): it is one call, and libnuma would print what it cannot do.
#include "compiler/Stream/PinnedMemory.h"
#include "runtime/Device/DeviceState.h"

#include <cerrno>
#include <cstring>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace heddle {
namespace {

constexpr const char *kWhat = "memory for copies";

/// Nearest to the GPU; -1: the machine has one, or the driver does not say.
int nodeOf(const DeviceState &state) {
  int node = -1;
  const cuda::Code code = state.driver->deviceGetAttribute(&node, cuda::kAttributeHostNumaId, state.ordinal);
  return code == cuda::kSuccess ? node : -1;
}

/// Pages that nobody has touched come from the node, or from another one where that is full.
bool prefer(void *memory, uint64_t bytes, int node) {
  constexpr int kBits = 8 * sizeof(unsigned long), kWords = 16;
  unsigned long nodes[kWords] = {};
  if (node >= kBits * kWords)
    return false;
  nodes[node / kBits] |= 1ul << (node % kBits);
  return syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, nodes, kBits * kWords + 1ul, 0u) == 0;
}

} // namespace

Result<PinnedMemory> PinnedMemory::allocate(const Device &device, uint64_t bytes) {
  const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t size = (bytes + page - 1) / page * page;
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::unavailable(std::string(kWhat) + ": " + std::to_string(size) + " bytes: " + std::strerror(errno));
  PinnedMemory made(device, memory, size);
  made.place();
  made.pin();
  return made;
}

void PinnedMemory::place() {
  const int node = nodeOf(*device.state());
  if (node < 0)
    return;
  if (prefer(memory, size, node))
    placed = node;
  else
    words = "not placed on node " + std::to_string(node) + ": " + std::strerror(errno);
}

void PinnedMemory::pin() {
  const DeviceState &state = *device.state();
  const Driver &driver = *state.driver;
  ContextScope scope(state);
  Status status = scope.status(kWhat);
  if (status.isOk() && !(driver.memHostRegister && driver.memHostUnregister))
    status = Status::unsupported("the driver pins no memory");
  if (status.isOk())
    status = driver.check(driver.memHostRegister(memory, size, 0), kWhat, "cuMemHostRegister");
  pinned = status.isOk();
  if (!pinned)
    words += (words.empty() ? "" : "; ") + ("not pinned: " + status.message());
}

PinnedMemory::PinnedMemory(PinnedMemory &&other) noexcept
    : device(other.device), memory(std::exchange(other.memory, nullptr)), size(std::exchange(other.size, 0)),
      pinned(std::exchange(other.pinned, false)), placed(other.placed), words(std::move(other.words)) {}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(device, other.device);
  std::swap(memory, other.memory);
  std::swap(size, other.size);
  std::swap(pinned, other.pinned);
  std::swap(placed, other.placed);
  std::swap(words, other.words);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (pinned) {
    const DeviceState &state = *device.state();
    ContextScope scope(state);
    if (!scope.isCurrent()) // given up: the driver may still copy
      return;
    state.driver->memHostUnregister(memory);
  }
  if (memory)
    munmap(memory, size);
}

} // namespace heddle
