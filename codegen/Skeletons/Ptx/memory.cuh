// Shared-memory addresses and vector stores to global memory. Addresses must be multiples of the width.
#pragma once

namespace heddle {
namespace ptx {

DEV uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

DEV void storeGlobal16(void *global, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(global), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

DEV void storeGlobal8(void *global, uint32_t a, uint32_t b) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(global), "r"(a), "r"(b) : "memory");
}

} // namespace ptx
} // namespace heddle
