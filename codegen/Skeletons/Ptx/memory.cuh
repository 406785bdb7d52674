// Shared-memory addresses and vector stores to global memory. Addresses must be multiples of the width.
#pragma once

namespace heddle {
namespace ptx {

DEV uint32_t sharedAddress(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// The shared memory that a launch asks for.
DEV unsigned char *launchedMemory() {
  extern __shared__ __align__(128) unsigned char launched[];
  return launched;
}

DEV void loadShared8(uint32_t address, int32_t (&words)[2]) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(address) : "memory");
}

DEV void loadShared16(uint32_t address, int32_t (&words)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

DEV void loadShared16(uint32_t address, float (&values)[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(address)
               : "memory");
}

DEV int32_t loadShared4(uint32_t address) {
  int32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

DEV void storeShared4(uint32_t address, int32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

DEV void storeShared8(uint32_t address, int32_t a, int32_t b) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
}

DEV void storeShared16(uint32_t address, int32_t a, int32_t b, int32_t c, int32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

DEV void orShared(uint32_t address, uint32_t bits) {
  asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}

// What the counter held before; only where `isPresent`, else 0. Without a branch, so that lanes stay together.
DEV uint32_t addGlobalIf(uint32_t *counter, uint32_t value, bool isPresent) {
  uint32_t before;
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %3, 0;\nmov.b32 %0, 0;\n"
               "@present atom.global.add.u32 %0, [%1], %2;\n}"
               : "=r"(before)
               : "l"(counter), "r"(value), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
  return before;
}

DEV uint32_t swapGlobal(uint32_t *word, uint32_t expected, uint32_t value) {
  uint32_t before;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(before)
               : "l"(word), "r"(expected), "r"(value)
               : "memory");
  return before;
}

// Words that other blocks write while this one runs.
DEV void loadCoherent8(const uint32_t *pair, uint32_t (&words)[2]) {
  uint64_t both;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(both) : "l"(pair) : "memory");
  words[0] = static_cast<uint32_t>(both);
  words[1] = static_cast<uint32_t>(both >> 32);
}

// Both words at once.
DEV void storeCoherent8(uint32_t *pair, uint32_t low, uint32_t high) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(pair), "l"(static_cast<uint64_t>(high) << 32 | low)
               : "memory");
}

// Several words, only where `isPresent`, else 0; each of them is seen whole. Without a branch, so that lanes stay together.
DEV void loadCoherent8(const void *global, bool isPresent, float (&values)[2]) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
               "@present ld.relaxed.gpu.global.v2.f32 {%0, %1}, [%2];\n}"
               : "=&f"(values[0]), "=&f"(values[1])
               : "l"(global), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

DEV void loadCoherent16(const void *global, bool isPresent, float (&values)[4]) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %5, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\n"
               "mov.b32 %3, 0;\n@present ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&f"(values[0]), "=&f"(values[1]), "=&f"(values[2]), "=&f"(values[3])
               : "l"(global), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

DEV void storeCoherent8(void *global, bool isPresent, uint32_t a, uint32_t b) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %3, 0;\n"
               "@present st.relaxed.gpu.global.v2.b32 [%0], {%1, %2};\n}" ::"l"(global),
               "r"(a), "r"(b), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

DEV void storeCoherent16(void *global, bool isPresent, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %5, 0;\n"
               "@present st.relaxed.gpu.global.v4.b32 [%0], {%1, %2, %3, %4};\n}" ::"l"(global),
               "r"(a), "r"(b), "r"(c), "r"(d), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

// What was written before the word that is seen is seen after.
DEV uint32_t loadAcquire4(const uint32_t *word) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

DEV void storeCoherent4(uint32_t *word, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// What this thread wrote before is seen by whoever sees what it writes after.
DEV void fenceGlobal() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Past the cache of the SM, which other SMs' writes do not reach.
DEV void loadGlobal16(const void *global, float (&values)[4]) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(global)
               : "memory");
}

// What nobody writes during the launch: through the cache of the SM, where lanes read parts of the same lines.
DEV void loadConstant16(const void *global, float (&values)[4]) {
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(global));
}

// Two floats, zero where not `isPresent`, whose address is not read then; without a branch, so that lanes stay
// together.
DEV void loadGlobal8(const float *global, bool isPresent, float (&values)[2]) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
               "@present ld.global.v2.f32 {%0, %1}, [%2];\n}"
               : "=&f"(values[0]), "=&f"(values[1])
               : "l"(global), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

// One word, likewise; where it stands among other accesses to memory.
DEV int32_t loadGlobal4(const int32_t *global, bool isPresent) {
  int32_t word;
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %2, 0;\nmov.b32 %0, 0;\n"
               "@present ld.global.b32 %0, [%1];\n}"
               : "=&r"(word)
               : "l"(global), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
  return word;
}

DEV uint32_t addGlobal(uint32_t *counter, uint32_t value) {
  uint32_t before;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

// The same; what this thread wrote before is seen by whoever adds after it, and what those before it wrote is seen after.
DEV uint32_t addGlobalInOrder(uint32_t *counter, uint32_t value) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

// Adds a float in global memory, without a branch, so that lanes stay together.
DEV void addGlobal4(float *to, bool isPresent, float a) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %2, 0;\n"
               "@present red.global.add.f32 [%0], %1;\n}" ::"l"(to),
               "f"(a), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

// Stores to global memory happen only where `isPresent`; without a branch, so that lanes stay together.
DEV void storeGlobal4(void *global, bool isPresent, uint32_t a) {
  asm volatile("{\n.reg .pred present;\nsetp.ne.b32 present, %2, 0;\n@present st.global.b32 [%0], %1;\n}" ::"l"(global),
               "r"(a), "r"(static_cast<uint32_t>(isPresent))
               : "memory");
}

DEV void storeGlobal8(void *global, bool isPresent, uint32_t a, uint32_t b) {
  asm volatile(
      "{\n.reg .pred present;\nsetp.ne.b32 present, %3, 0;\n@present st.global.v2.b32 [%0], {%1, %2};\n}" ::"l"(global),
      "r"(a), "r"(b), "r"(static_cast<uint32_t>(isPresent))
      : "memory");
}

DEV void storeGlobal16(void *global, bool isPresent, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile(
      "{\n.reg .pred present;\nsetp.ne.b32 present, %5, 0;\n@present st.global.v4.b32 [%0], {%1, %2, %3, %4};\n}" ::"l"(
          global),
      "r"(a), "r"(b), "r"(c), "r"(d), "r"(static_cast<uint32_t>(isPresent))
      : "memory");
}

// These are floats: seen as words here, accumulators become words wherever they are carried, which costs compile time.
DEV void storeGlobal16(void *global, bool isPresent, float a, float b, float c, float d) {
  asm volatile(
      "{\n.reg .pred present;\nsetp.ne.b32 present, %5, 0;\n@present st.global.v4.f32 [%0], {%1, %2, %3, %4};\n}" ::"l"(
          global),
      "f"(a), "f"(b), "f"(c), "f"(d), "r"(static_cast<uint32_t>(isPresent))
      : "memory");
}

} // namespace ptx
} // namespace heddle
