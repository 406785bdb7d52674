//===- Board.cpp - mapped before ranks are started ----------------------------===//
#include "Board.h"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace heddle::ranks {

uint8_t *sharedBytes(size_t bytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    std::abort();
  return static_cast<uint8_t *>(mapped);
}

Board &board() {
  static Board *only = new (sharedBytes(sizeof(Board))) Board;
  return *only;
}

} // namespace heddle::ranks
