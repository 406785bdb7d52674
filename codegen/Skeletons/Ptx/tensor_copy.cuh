// Asynchronous copies of boxes of a tensor (compute_90). Elements outside the tensor arrive as zeros and count.
#pragma once

namespace heddle {

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

namespace ptx {

// The box at the given coordinates, innermost first; its bytes complete on `barrier`.
DEV void copyBox(uint32_t shared, const TensorMap *map, uint32_t barrier, int32_t x0, int32_t x1, int32_t x2,
                 int32_t x3, int32_t x4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
               : "memory");
}

// The same for every block of the cluster that `blocks` has a bit for: to the same place in its shared memory, and the
// bytes complete on its barrier at the same place as `barrier`.
DEV void copyBoxToBlocks(uint32_t shared, const TensorMap *map, uint32_t barrier, int32_t x0, int32_t x1, int32_t x2,
                         int32_t x3, int32_t x4, uint16_t blocks) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
               "[%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(shared),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
               "h"(blocks)
               : "memory");
}

DEV void prefetchTensorMap(const TensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(map)) : "memory");
}

} // namespace ptx
} // namespace heddle
