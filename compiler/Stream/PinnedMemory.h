// Owns memory of the host that is pinned for a GPU, on the node of the machine's memory that is nearest to it: what another
// node holds goes over the link between processors.
#pragma once

#include "runtime/Device/Device.h"

#include <string>

namespace heddle {

/// Move-only.
class PinnedMemory {
public:
  /// Of bytes >= 1, in whole pages. What cannot be placed or pinned is ordinary memory, and note() says why: copies of it
  /// are right, and slower. unavailable: the machine has not so much.
  static Result<PinnedMemory> allocate(const Device &device, uint64_t bytes);
  PinnedMemory(PinnedMemory &&other) noexcept;
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  char *data() const { return static_cast<char *>(memory); }
  uint64_t bytes() const { return size; }
  bool isPinned() const { return pinned; }
  /// That the memory is on; -1: as the system chose.
  int node() const { return placed; }
  const std::string &note() const { return words; }

private:
  PinnedMemory(const Device &device, void *memory, uint64_t size) : device(device), memory(memory), size(size) {}
  void place();
  void pin();

  Device device;
  void *memory = nullptr;
  uint64_t size = 0;
  bool pinned = false;
  int placed = -1;
  std::string words;
};

} // namespace heddle
