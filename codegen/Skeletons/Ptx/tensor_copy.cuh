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

// Row number `row` of a matrix.
DEV void copyRow(uint32_t shared, const TensorMap *map, uint32_t barrier, int32_t row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(0), "r"(row)
      : "memory");
}

} // namespace ptx
} // namespace heddle
