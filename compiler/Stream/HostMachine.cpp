#include "compiler/Stream/HostMachine.h"
#include "compiler/Io/Memory.h"

#include <cstring>

namespace heddle {

Result<char *> HostMachine::allocate(uint64_t bytes) {
  HEDDLE_TRY(checkMemory("pieces of a streamed call", double(bytes), "take smaller ones"));
  return memory.emplace_back(bytes).data();
}

Status HostMachine::take(const char *from, uint64_t bytes, void *to) {
  std::memcpy(to, from, bytes);
  return {};
}

} // namespace heddle
