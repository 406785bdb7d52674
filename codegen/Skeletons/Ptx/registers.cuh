// Registers of a warpgroup after launch (compute_90a): all four warps execute the same change. What is kept out of
// them.
#pragma once

namespace heddle {
namespace ptx {

template <int Registers> DEV void shrinkRegisters() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers in steps of 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// The object stays in memory from here on.
template <class T> DEV void keepInMemory(T &object) { asm volatile("" ::"l"(&object) : "memory"); }

// It is computed by here, not where it is used.
template <class T> DEV void keepHere(T *&pointer) { asm volatile("" : "+l"(pointer)); }
DEV void keepHere(float &number) { asm volatile("" : "+f"(number)); }
DEV void keepHere(int32_t &number) { asm volatile("" : "+r"(number)); }

// Waits until the block has that many free registers.
template <int Registers> DEV void growRegisters() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers in steps of 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

} // namespace ptx
} // namespace heddle
