// read_kernel.cuh - reads memory, 128 bytes of a thread under way at a time, and keeps nothing of it.
constexpr int kThreads = 512, kLoads = 8;
constexpr unsigned kUnlikely = 0x9e3779b9;

inline __device__ uint4 readOnce(const uint4 *from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

// `count` is a multiple of what all threads read together.
extern "C" __global__ void __launch_bounds__(kThreads)
    heddle_kernel(const uint4 *from, unsigned long long count, unsigned *kept) {
  const unsigned long long threads = (unsigned long long)gridDim.x * kThreads;
  unsigned all = 0;
  for (unsigned long long i = (unsigned long long)blockIdx.x * kThreads + threadIdx.x; i < count;
       i += kLoads * threads) {
    uint4 values[kLoads];
#pragma unroll
    for (int n = 0; n < kLoads; ++n)
      values[n] = readOnce(from + i + n * threads);
#pragma unroll
    for (int n = 0; n < kLoads; ++n)
      all ^= values[n].x ^ values[n].y ^ values[n].z ^ values[n].w;
  }
  if (all == kUnlikely) // so that the reads are of use
    *kept = all;
}
