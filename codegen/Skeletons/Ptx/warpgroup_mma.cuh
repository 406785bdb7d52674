// wgmma: mma of a warpgroup m64nNk16, m64nNk32 of bytes, m64nNk8 of tf32, with fp32 accumulators (compute_90a). Asynchronous: accumulators and
// operand registers must not be touched between it and the wait that covers it. Lane 4*r + c of warp w holds
// rows 16*w + r (elements 0, 1) and 16*w + r + 8 (elements 2, 3), columns 8*n + 2*c and the next, in sum[n].
#pragma once

namespace heddle {
namespace ptx {

// Orders register accesses before the mma that follow.
DEV void fenceMma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

DEV void commitMma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Returns when at most Pending of the newest groups are unfinished.
template <int Pending> DEV void waitMma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps reads of accumulators behind the wait before it.
template <int N> DEV void pin(float (&values)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    asm volatile("" : "+f"(values[i][0]), "+f"(values[i][1]), "+f"(values[i][2]), "+f"(values[i][3])::"memory");
}

// The value is made where this stands.
DEV void pin(float &value) { asm volatile("" : "+f"(value)); }

// What the values were is of no interest any more: no register need keep them.
template <int N> DEV void forget(float (&values)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    asm volatile("" : "=f"(values[i][0]), "=f"(values[i][1]), "=f"(values[i][2]), "=f"(values[i][3]));
}

// Matrix descriptor of an operand with 128-byte swizzle at a shared address below 256 KB. Row groups of eight lie 1024
// bytes apart; columns beyond the first 64 at ColumnBytes (operands that run along their rows only). Address and offset
// are multiples of 16.
template <uint32_t ColumnBytes> DEV uint64_t sharedOperand(uint32_t address, uint32_t offset) {
  constexpr uint32_t kSwizzle128 = 1u << 30, kRowGroupBytes = 1024, kUnit = 16;
  return static_cast<uint64_t>(kSwizzle128 | kRowGroupBytes / kUnit) << 32 |
         (address / kUnit + (offset / kUnit + (ColumnBytes / kUnit << 16)));
}

// WarpgroupMma<N, Element>: sum[N/8][4] (+)= A (64x16) times B (16xN).
//   ofShared:    A and B in shared memory, rows along the summed dimension; transposed, along M and N
//   ofRegisters: A in registers, B in shared memory with rows along N
// Where elements are E4m3, A is 64x32, B 32xN, of Tf32 A is 64x8, B 8xN, and rows of B lie along the summed dimension in
// both. Of floats the lowest 13 bits do not count.
// An instruction names its registers one by one. The source lists those of the sizes that it uses in the macro
// HEDDLE_WARPGROUP_SHAPES(SHAPE) (WarpgroupShapes.h): all 32 sizes would take 2 to 3% of the compile time.
template <int N, class Element> struct WarpgroupMma;

// clang-format off
// N, the type of the elements, the list of accumulators, the operands behind them, the accumulators.
#define HEDDLE_MMA(N, ELEMENT, TYPE, LIST, P0, P1, P2, P3, P4, P5, ...)                                                \
  template <> struct WarpgroupMma<N, ELEMENT> {                                                                        \
    template <bool Accumulate, bool AreTransposed = false>                                                             \
    DEV static void ofShared(float (&d)[N / 8][4], uint64_t a, uint64_t b) {                                           \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                                     \
                   " {" LIST "}, " P0 ", " P1 ", " P2 ", 1, 1, " P3 ", " P3 ";"                                        \
                   : __VA_ARGS__                                                                                       \
                   : "l"(a), "l"(b), "n"(Accumulate), "n"(AreTransposed));                                             \
    }                                                                                                                  \
    template <bool Accumulate = true>                                                                                  \
    DEV static void ofRegisters(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b) {                            \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                                     \
                   " {" LIST "}, {" P0 ", " P1 ", " P2 ", " P3 "}, " P4 ", " P5 ", 1, 1, 1;"                           \
                   : __VA_ARGS__                                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(Accumulate));                                      \
    }                                                                                                                  \
  };
// The same of operands that lie along the summed dimension only, STEP of which one mma sums.
#define HEDDLE_ROWS_MMA(N, ELEMENT, TYPE, STEP, LIST, P0, P1, P2, P3, P4, P5, ...)                                           \
  template <> struct WarpgroupMma<N, ELEMENT> {                                                                        \
    template <bool Accumulate> DEV static void ofShared(float (&d)[N / 8][4], uint64_t a, uint64_t b) {                \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k" STEP ".f32." TYPE "." TYPE                                     \
                   " {" LIST "}, " P0 ", " P1 ", " P2 ", 1, 1;"                                                        \
                   : __VA_ARGS__                                                                                       \
                   : "l"(a), "l"(b), "n"(Accumulate));                                                                 \
    }                                                                                                                  \
    DEV static void ofRegisters(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b) {                            \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k" STEP ".f32." TYPE "." TYPE                                     \
                   " {" LIST "}, {" P0 ", " P1 ", " P2 ", " P3 "}, " P4 ", " P5 ", 1, 1;"                              \
                   : __VA_ARGS__                                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));                                      \
    }                                                                                                                  \
  };
#define HEDDLE_SHAPE(N, ...)                                                                                           \
  HEDDLE_MMA(N, Bf16, "bf16", __VA_ARGS__)                                                                             \
  HEDDLE_MMA(N, Fp16, "f16", __VA_ARGS__)                                                                              \
  HEDDLE_ROWS_MMA(N, E4m3, "e4m3", "32", __VA_ARGS__)                                                                  \
  HEDDLE_ROWS_MMA(N, Tf32, "tf32", "8", __VA_ARGS__)
// clang-format on
HEDDLE_WARPGROUP_SHAPES(HEDDLE_SHAPE)

// sum = A(0) B(0) + A(1) B(1) and so on, of operands in shared memory. For NVRTC the accumulators of a warp are in memory until
// it unrolls the loops over them, and each product would load and store them all, the first one twice if it were a branch
// of the loop; here they are an object of their own. Together 8% of the compile time of a kernel of bytes.
template <class Mma, int Count, int Tiles, class OfA, class OfB>
DEV void startSum(float (&sum)[Tiles][4], const OfA &ofA, const OfB &ofB) {
  struct Held {
    float tiles[Tiles][4];
  } held;
  Mma::template ofShared<false>(held.tiles, ofA(0), ofB(0));
#pragma unroll
  for (int i = 1; i < Count; ++i)
    Mma::template ofShared<true>(held.tiles, ofA(i), ofB(i));
  reinterpret_cast<Held &>(sum) = held;
}

} // namespace ptx
} // namespace heddle
