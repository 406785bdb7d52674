// wgmma: mma of a warpgroup m64nNk16 with fp32 accumulators (compute_90a). Asynchronous: accumulators and
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
//   ofShared:    A and B in shared memory, rows along the summed dimension
//   ofSharedTransposed: A and B in shared memory, rows along M and N
//   ofRegisters: A in registers, B in shared memory with rows along N
// There are those for N = HEDDLE_SCORE_COLUMNS, HEDDLE_OUTPUT_COLUMNS and, where they are given, HEDDLE_HEAD_COLUMNS
// and HEDDLE_QUERY_COLUMNS, macros of the including source.
template <int N, class Element> struct WarpgroupMma;

// clang-format off
#define HEDDLE_REGISTERS_4 "%0, %1, %2, %3"
#define HEDDLE_REGISTERS_8 HEDDLE_REGISTERS_4 ", %4, %5, %6, %7"
#define HEDDLE_REGISTERS_12 HEDDLE_REGISTERS_8 ", %8, %9, %10, %11"
#define HEDDLE_REGISTERS_16 HEDDLE_REGISTERS_12 ", %12, %13, %14, %15"
#define HEDDLE_REGISTERS_20 HEDDLE_REGISTERS_16 ", %16, %17, %18, %19"
#define HEDDLE_REGISTERS_24 HEDDLE_REGISTERS_20 ", %20, %21, %22, %23"
#define HEDDLE_REGISTERS_28 HEDDLE_REGISTERS_24 ", %24, %25, %26, %27"
#define HEDDLE_REGISTERS_32 HEDDLE_REGISTERS_28 ", %28, %29, %30, %31"
#define HEDDLE_REGISTERS_36 HEDDLE_REGISTERS_32 ", %32, %33, %34, %35"
#define HEDDLE_REGISTERS_40 HEDDLE_REGISTERS_36 ", %36, %37, %38, %39"
#define HEDDLE_REGISTERS_44 HEDDLE_REGISTERS_40 ", %40, %41, %42, %43"
#define HEDDLE_REGISTERS_48 HEDDLE_REGISTERS_44 ", %44, %45, %46, %47"
#define HEDDLE_REGISTERS_52 HEDDLE_REGISTERS_48 ", %48, %49, %50, %51"
#define HEDDLE_REGISTERS_56 HEDDLE_REGISTERS_52 ", %52, %53, %54, %55"
#define HEDDLE_REGISTERS_60 HEDDLE_REGISTERS_56 ", %56, %57, %58, %59"
#define HEDDLE_REGISTERS_64 HEDDLE_REGISTERS_60 ", %60, %61, %62, %63"
#define HEDDLE_REGISTERS_68 HEDDLE_REGISTERS_64 ", %64, %65, %66, %67"
#define HEDDLE_REGISTERS_72 HEDDLE_REGISTERS_68 ", %68, %69, %70, %71"
#define HEDDLE_REGISTERS_76 HEDDLE_REGISTERS_72 ", %72, %73, %74, %75"
#define HEDDLE_REGISTERS_80 HEDDLE_REGISTERS_76 ", %76, %77, %78, %79"
#define HEDDLE_REGISTERS_84 HEDDLE_REGISTERS_80 ", %80, %81, %82, %83"
#define HEDDLE_REGISTERS_88 HEDDLE_REGISTERS_84 ", %84, %85, %86, %87"
#define HEDDLE_REGISTERS_92 HEDDLE_REGISTERS_88 ", %88, %89, %90, %91"
#define HEDDLE_REGISTERS_96 HEDDLE_REGISTERS_92 ", %92, %93, %94, %95"
#define HEDDLE_REGISTERS_100 HEDDLE_REGISTERS_96 ", %96, %97, %98, %99"
#define HEDDLE_REGISTERS_104 HEDDLE_REGISTERS_100 ", %100, %101, %102, %103"
#define HEDDLE_REGISTERS_108 HEDDLE_REGISTERS_104 ", %104, %105, %106, %107"
#define HEDDLE_REGISTERS_112 HEDDLE_REGISTERS_108 ", %108, %109, %110, %111"
#define HEDDLE_REGISTERS_116 HEDDLE_REGISTERS_112 ", %112, %113, %114, %115"
#define HEDDLE_REGISTERS_120 HEDDLE_REGISTERS_116 ", %116, %117, %118, %119"
#define HEDDLE_REGISTERS_124 HEDDLE_REGISTERS_120 ", %120, %121, %122, %123"
#define HEDDLE_REGISTERS_128 HEDDLE_REGISTERS_124 ", %124, %125, %126, %127"

#define HEDDLE_SUMS_4 "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3])
#define HEDDLE_SUMS_8 HEDDLE_SUMS_4, "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3])
#define HEDDLE_SUMS_12 HEDDLE_SUMS_8, "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3])
#define HEDDLE_SUMS_16 HEDDLE_SUMS_12, "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
#define HEDDLE_SUMS_20 HEDDLE_SUMS_16, "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3])
#define HEDDLE_SUMS_24 HEDDLE_SUMS_20, "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3])
#define HEDDLE_SUMS_28 HEDDLE_SUMS_24, "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3])
#define HEDDLE_SUMS_32 HEDDLE_SUMS_28, "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
#define HEDDLE_SUMS_36 HEDDLE_SUMS_32, "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3])
#define HEDDLE_SUMS_40 HEDDLE_SUMS_36, "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3])
#define HEDDLE_SUMS_44 HEDDLE_SUMS_40, "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3])
#define HEDDLE_SUMS_48 HEDDLE_SUMS_44, "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3])
#define HEDDLE_SUMS_52 HEDDLE_SUMS_48, "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3])
#define HEDDLE_SUMS_56 HEDDLE_SUMS_52, "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3])
#define HEDDLE_SUMS_60 HEDDLE_SUMS_56, "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3])
#define HEDDLE_SUMS_64 HEDDLE_SUMS_60, "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
#define HEDDLE_SUMS_68 HEDDLE_SUMS_64, "+f"(d[16][0]), "+f"(d[16][1]), "+f"(d[16][2]), "+f"(d[16][3])
#define HEDDLE_SUMS_72 HEDDLE_SUMS_68, "+f"(d[17][0]), "+f"(d[17][1]), "+f"(d[17][2]), "+f"(d[17][3])
#define HEDDLE_SUMS_76 HEDDLE_SUMS_72, "+f"(d[18][0]), "+f"(d[18][1]), "+f"(d[18][2]), "+f"(d[18][3])
#define HEDDLE_SUMS_80 HEDDLE_SUMS_76, "+f"(d[19][0]), "+f"(d[19][1]), "+f"(d[19][2]), "+f"(d[19][3])
#define HEDDLE_SUMS_84 HEDDLE_SUMS_80, "+f"(d[20][0]), "+f"(d[20][1]), "+f"(d[20][2]), "+f"(d[20][3])
#define HEDDLE_SUMS_88 HEDDLE_SUMS_84, "+f"(d[21][0]), "+f"(d[21][1]), "+f"(d[21][2]), "+f"(d[21][3])
#define HEDDLE_SUMS_92 HEDDLE_SUMS_88, "+f"(d[22][0]), "+f"(d[22][1]), "+f"(d[22][2]), "+f"(d[22][3])
#define HEDDLE_SUMS_96 HEDDLE_SUMS_92, "+f"(d[23][0]), "+f"(d[23][1]), "+f"(d[23][2]), "+f"(d[23][3])
#define HEDDLE_SUMS_100 HEDDLE_SUMS_96, "+f"(d[24][0]), "+f"(d[24][1]), "+f"(d[24][2]), "+f"(d[24][3])
#define HEDDLE_SUMS_104 HEDDLE_SUMS_100, "+f"(d[25][0]), "+f"(d[25][1]), "+f"(d[25][2]), "+f"(d[25][3])
#define HEDDLE_SUMS_108 HEDDLE_SUMS_104, "+f"(d[26][0]), "+f"(d[26][1]), "+f"(d[26][2]), "+f"(d[26][3])
#define HEDDLE_SUMS_112 HEDDLE_SUMS_108, "+f"(d[27][0]), "+f"(d[27][1]), "+f"(d[27][2]), "+f"(d[27][3])
#define HEDDLE_SUMS_116 HEDDLE_SUMS_112, "+f"(d[28][0]), "+f"(d[28][1]), "+f"(d[28][2]), "+f"(d[28][3])
#define HEDDLE_SUMS_120 HEDDLE_SUMS_116, "+f"(d[29][0]), "+f"(d[29][1]), "+f"(d[29][2]), "+f"(d[29][3])
#define HEDDLE_SUMS_124 HEDDLE_SUMS_120, "+f"(d[30][0]), "+f"(d[30][1]), "+f"(d[30][2]), "+f"(d[30][3])
#define HEDDLE_SUMS_128 HEDDLE_SUMS_124, "+f"(d[31][0]), "+f"(d[31][1]), "+f"(d[31][2]), "+f"(d[31][3])

// N, the type of the elements, accumulator registers R, and the operand numbers behind the accumulators.
#define HEDDLE_MMA(N, ELEMENT, TYPE, R, P0, P1, P2, P3, P4, P5)                                                    \
  template <> struct WarpgroupMma<N, ELEMENT> {                                                                    \
    template <bool Accumulate> DEV static void ofShared(float (&d)[N / 8][4], uint64_t a, uint64_t b) {                \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                                     \
                   " {" HEDDLE_REGISTERS_##R "}, %" #P0 ", %" #P1 ", %" #P2 ", 1, 1, 0, 0;"                            \
                   : HEDDLE_SUMS_##R                                                                                   \
                   : "l"(a), "l"(b), "n"(Accumulate));                                                                 \
    }                                                                                                                  \
    template <bool Accumulate> DEV static void ofSharedTransposed(float (&d)[N / 8][4], uint64_t a, uint64_t b) {      \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                                     \
                   " {" HEDDLE_REGISTERS_##R "}, %" #P0 ", %" #P1 ", %" #P2 ", 1, 1, 1, 1;"                            \
                   : HEDDLE_SUMS_##R                                                                                   \
                   : "l"(a), "l"(b), "n"(Accumulate));                                                                 \
    }                                                                                                                  \
    DEV static void ofRegisters(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b) {                            \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                                     \
                   " {" HEDDLE_REGISTERS_##R "}, {%" #P0 ", %" #P1 ", %" #P2 ", %" #P3 "}, %" #P4 ", %" #P5 ", 1, 1, 1;" \
                   : HEDDLE_SUMS_##R                                                                                   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));                                      \
    }                                                                                                                  \
  };
#define HEDDLE_MMA_OF_TYPES(N, ...)                                                                                \
  HEDDLE_MMA(N, Bf16, "bf16", __VA_ARGS__)                                                                         \
  HEDDLE_MMA(N, Fp16, "f16", __VA_ARGS__)
#define HEDDLE_MMA_OF_NUMBERS(...) HEDDLE_MMA_OF_TYPES(__VA_ARGS__)
#define HEDDLE_MMA_OF_SIZE(N) HEDDLE_MMA_OF_NUMBERS(HEDDLE_MMA_##N)
#define HEDDLE_DEFINE_MMA(N) HEDDLE_MMA_OF_SIZE(N)

// What stands behind each N: its accumulator registers R and the operand numbers behind them.
#define HEDDLE_MMA_8 8, 4, 4, 5, 6, 7, 8, 9
#define HEDDLE_MMA_16 16, 8, 8, 9, 10, 11, 12, 13
#define HEDDLE_MMA_24 24, 12, 12, 13, 14, 15, 16, 17
#define HEDDLE_MMA_32 32, 16, 16, 17, 18, 19, 20, 21
#define HEDDLE_MMA_40 40, 20, 20, 21, 22, 23, 24, 25
#define HEDDLE_MMA_48 48, 24, 24, 25, 26, 27, 28, 29
#define HEDDLE_MMA_56 56, 28, 28, 29, 30, 31, 32, 33
#define HEDDLE_MMA_64 64, 32, 32, 33, 34, 35, 36, 37
#define HEDDLE_MMA_72 72, 36, 36, 37, 38, 39, 40, 41
#define HEDDLE_MMA_80 80, 40, 40, 41, 42, 43, 44, 45
#define HEDDLE_MMA_88 88, 44, 44, 45, 46, 47, 48, 49
#define HEDDLE_MMA_96 96, 48, 48, 49, 50, 51, 52, 53
#define HEDDLE_MMA_104 104, 52, 52, 53, 54, 55, 56, 57
#define HEDDLE_MMA_112 112, 56, 56, 57, 58, 59, 60, 61
#define HEDDLE_MMA_120 120, 60, 60, 61, 62, 63, 64, 65
#define HEDDLE_MMA_128 128, 64, 64, 65, 66, 67, 68, 69
#define HEDDLE_MMA_136 136, 68, 68, 69, 70, 71, 72, 73
#define HEDDLE_MMA_144 144, 72, 72, 73, 74, 75, 76, 77
#define HEDDLE_MMA_152 152, 76, 76, 77, 78, 79, 80, 81
#define HEDDLE_MMA_160 160, 80, 80, 81, 82, 83, 84, 85
#define HEDDLE_MMA_168 168, 84, 84, 85, 86, 87, 88, 89
#define HEDDLE_MMA_176 176, 88, 88, 89, 90, 91, 92, 93
#define HEDDLE_MMA_184 184, 92, 92, 93, 94, 95, 96, 97
#define HEDDLE_MMA_192 192, 96, 96, 97, 98, 99, 100, 101
#define HEDDLE_MMA_200 200, 100, 100, 101, 102, 103, 104, 105
#define HEDDLE_MMA_208 208, 104, 104, 105, 106, 107, 108, 109
#define HEDDLE_MMA_216 216, 108, 108, 109, 110, 111, 112, 113
#define HEDDLE_MMA_224 224, 112, 112, 113, 114, 115, 116, 117
#define HEDDLE_MMA_232 232, 116, 116, 117, 118, 119, 120, 121
#define HEDDLE_MMA_240 240, 120, 120, 121, 122, 123, 124, 125
#define HEDDLE_MMA_248 248, 124, 124, 125, 126, 127, 128, 129
#define HEDDLE_MMA_256 256, 128, 128, 129, 130, 131, 132, 133

// Only the sizes that the kernel uses: to read all 32 would take 2 to 3% of its compile time.
HEDDLE_DEFINE_MMA(HEDDLE_SCORE_COLUMNS)
#if HEDDLE_OUTPUT_COLUMNS != HEDDLE_SCORE_COLUMNS
HEDDLE_DEFINE_MMA(HEDDLE_OUTPUT_COLUMNS)
#endif
#ifdef HEDDLE_HEAD_COLUMNS
#if HEDDLE_HEAD_COLUMNS != HEDDLE_SCORE_COLUMNS && HEDDLE_HEAD_COLUMNS != HEDDLE_OUTPUT_COLUMNS
HEDDLE_DEFINE_MMA(HEDDLE_HEAD_COLUMNS)
#endif
#if HEDDLE_QUERY_COLUMNS != HEDDLE_SCORE_COLUMNS && HEDDLE_QUERY_COLUMNS != HEDDLE_OUTPUT_COLUMNS &&                   \
    HEDDLE_QUERY_COLUMNS != HEDDLE_HEAD_COLUMNS
HEDDLE_DEFINE_MMA(HEDDLE_QUERY_COLUMNS)
#endif
#endif
// clang-format on

} // namespace ptx
} // namespace heddle
