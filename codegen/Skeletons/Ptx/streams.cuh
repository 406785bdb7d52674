// What passes through once: loads and stores that ask caches to let go of it first, and words in global memory by which
// blocks tell each other what they have found. Addresses must be multiples of the width.
#pragma once

namespace heddle {
namespace ptx {

// What nobody writes during the launch. Not kept by the SM; IsLast: nor, by its wish, in the second level.
template <bool IsLast> DEV void loadPassing16(const void *global, uint32_t (&words)[4]) {
  if constexpr (IsLast)
    asm volatile("ld.global.cs.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(global));
  else
    asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(global));
}

template <bool IsLast> DEV void storePassing8(void *global, uint32_t a, uint32_t b) {
  if constexpr (IsLast)
    asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(global), "r"(a), "r"(b) : "memory");
  else
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(global), "r"(a), "r"(b) : "memory");
}

template <bool IsLast> DEV void storePassing4(void *global, uint32_t word) {
  if constexpr (IsLast)
    asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(global), "r"(word) : "memory");
  else
    asm volatile("st.global.b32 [%0], %1;" ::"l"(global), "r"(word) : "memory");
}

// A word that another block may write meanwhile; it says nothing of other words.
DEV uint32_t loadCoherent4(const uint32_t *word) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

DEV void raiseGlobal(uint32_t *word, uint32_t value) {
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// Leaves the SM to other warps for about so long, twice that at most.
template <int Nanoseconds> DEV void sleep() { asm volatile("nanosleep.u32 %0;" ::"n"(Nanoseconds) : "memory"); }

// What this thread wrote before is seen by who has seen the sum (loadAcquire4).
DEV void addRelease(uint32_t *counter, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

DEV void orRelease(uint32_t *word, uint32_t bits) {
  asm volatile("red.release.gpu.global.or.b32 [%0], %1;" ::"l"(word), "r"(bits) : "memory");
}

// The same, and who sees by the sum that it is the last one sees what all others wrote.
DEV uint32_t addAcquireRelease(uint32_t *counter, uint32_t value) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

DEV void addGlobal8(uint64_t *sum, int64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(sum), "l"(value) : "memory");
}

// The larger number, also of two in a word each; NaN is none.
DEV uint32_t largerBf16(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}
DEV uint32_t largerFp16(uint32_t a, uint32_t b) {
  uint32_t word;
  asm("max.f16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
  return word;
}

} // namespace ptx
} // namespace heddle
