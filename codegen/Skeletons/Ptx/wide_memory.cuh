// Stores of matrices and additions of 16 bytes, and what the asynchronous proxy sees of shared memory (compute_90).
#pragma once

namespace heddle {
namespace ptx {

// What this thread wrote to shared memory is seen by copies and mma of the asynchronous proxy; a barrier must follow.
DEV void fenceShared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The same of global memory, before it is said that it is written and behind where that is heard.
DEV void fenceGlobalCopies() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Four 8x8 matrices of 16-bit elements as mma hold them; lane l gives the address of row l % 8 of matrix l / 8.
DEV void storeMatrix4(uint32_t address, const uint32_t (&fragment)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(fragment[0]),
               "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
               : "memory");
}

DEV void storeShared16(uint32_t address, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// Adds four floats in global memory, without a branch, so that lanes stay together.
DEV void addGlobal16(float *to, bool isPresent, float a, float b, float c, float d) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %5, 0;\n"
               "@present red.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n}" ::"l"(to),
               "f"(a), "f"(b), "f"(c), "f"(d), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

} // namespace ptx
} // namespace heddle
