// What blocks of Hopper kernels have in common: places in shared memory, columns of tiles, and words that all lanes of
// a warp share.
#pragma once

#include "Shared/pipeline.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {

using namespace sm90;

constexpr int kWarpgroupThreads = 128;

// Places in shared memory are constants. The driver reserves the first 1024 bytes of every block; verified at entry.
constexpr uint32_t kSharedBase = 1024;

extern __shared__ __align__(1024) unsigned char sharedMemory[];

DEV bool placesAreRight() { return ptx::sharedAddress(sharedMemory) == kSharedBase; }

// A word that is the same in all lanes, now known to be: the reduction's result is a uniform register. What control
// flow and addresses derive from it stays uniform, and mma follow each other without moves between register files.
DEV int32_t uniform(int32_t word) { return __reduce_or_sync(0xffffffffu, word); }

} // namespace heddle
