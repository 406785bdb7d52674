// Owns every number that the code generator knows about a GPU: the limits and features of an
// architecture, what a kernel may use. Nothing else in the project may mention an architecture by
// its number: other code asks for a limit or a feature. A new architecture is one row in GpuArch.cpp
// and one expectation in tests/unit/gpu_arch_test.cpp.
#pragma once

#include "codegen/Target/FindArch.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle {

/// What instructions a kernel compiled for an architecture may use.
struct GpuFeatures {
  bool hasCpAsync;    ///< cp.async from global to shared memory
  bool hasTma;        ///< tensor-map copies and mbarrier transactions
  bool hasWgmma;      ///< warpgroup matrix products from shared memory
  bool hasFp8Mma;     ///< matrix products on e4m3 and e5m2, and conversions of them
  bool hasClusters;   ///< blocks that reach each other's shared memory
  bool hasVectorAdds; ///< additions to global memory of up to four floats at a time
};

/// Limits of one compilation target. All rows are constants; references stay valid for the life
/// of the program and may be read from any thread.
struct GpuArch {
  std::string_view name; ///< as NVRTC spells it, and the key of every table
  int major;             ///< compute capability
  int minor;
  bool isExact;          ///< the binary runs on this very compute capability only
  int smemPerBlockBytes; ///< most dynamic plus static shared memory of one block (opt-in)
  int smemPerSmBytes;    ///< shared memory of one SM
  int smemReservedBytes; ///< taken by the driver from every block on top of its own
  int registersPerSm;    ///< 32-bit registers of one SM
  int maxRegistersPerThread;
  int maxThreadsPerBlock;
  int maxThreadsPerSm;
  int maxBlocksPerSm;
  GpuFeatures features;
  std::string_view referenceGpu; ///< GpuModel::name of the model that stands for the architecture

  static constexpr int kWarpSize = 32;

  /// True when a cubin of this architecture runs on a GPU of compute capability major.minor.
  bool runsOn(int gpuMajor, int gpuMinor) const;
};

/// All rows, in ascending order of compute capability.
const std::vector<GpuArch> &gpuArchs();

/// Shared memory that every one of them gives one block: the promise of portable kernels.
int portableSmemBytes();

} // namespace heddle
