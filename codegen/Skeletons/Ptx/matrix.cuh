// Tensor core mma m16n8k16, m16n8k8 of tf32, with fp32 accumulators and the shared-memory loads of their operands
// (compute_80). Fragment layouts are those of the PTX manual: lane 4*r + c of an accumulator holds row r
// (elements 0, 1) and row r + 8 (elements 2, 3), columns 2*c and 2*c + 1.
#pragma once

namespace heddle {
namespace ptx {

// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
DEV void loadMatrix4(uint32_t (&fragment)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address));
}

// Loads as loadMatrix4 does, with each matrix transposed.
DEV void loadMatrix4Transposed(uint32_t (&fragment)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address));
}

// sum += a * b, a 16x16 and b 16x8 elements.
template <class Element> DEV void mma(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

#define HEDDLE_MMA_OF(ELEMENT, TYPE)                                                                                   \
  template <> DEV void mma<ELEMENT>(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {               \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "                                                 \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                              \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                               \
  }
HEDDLE_MMA_OF(Bf16, "bf16")
HEDDLE_MMA_OF(Fp16, "f16")

// sum += a * b, a 16x8 and b 8x8 floats, of which the lowest 13 bits are not looked at. What leaves the tensor core is
// cut, not rounded.
DEV void mmaTf32(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace ptx
} // namespace heddle
