// Owns the one call of NVRTC: fixed options, in-memory headers, the error texts, the resources of
// the result and the content key. All functions are thread safe; parallel compilations scale.
#pragma once

#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Nvrtc/ResourceUsage.h"

namespace heddle {

/// The name of the one entry of every generated kernel.
inline constexpr const char *kKernelEntry = "heddle_kernel";

struct Cubin {
  std::string arch; ///< what it was compiled for, as given
  std::string contentKey;
  std::string nvrtcVersion;
  std::string ptx;
  std::string cubin;
  std::string log; ///< compiler and ptxas output without times, and the number of warpgroup products if there are any
  ResourceUsage usage;
  int64_t minDriver = 0; ///< for the cubin, as cuDriverGetVersion counts: the first release of NVRTC's major version
  double totalMs = 0;    ///< wall time of the whole call
  double ptxasMs = 0;    ///< of that, ptxas, as it says itself

  /// Instructions in the PTX.
  int64_t warpgroupProducts() const { return countWarpgroupProducts(ptx); }
  int64_t registers() const { return usage.registers; }
  int64_t spillBytes() const { return usage.spillStoreBytes + usage.spillLoadBytes; }
};

/// Options of every compilation for `arch`, before those of the source.
std::vector<std::string> fixedOptions(std::string_view arch);

/// SHA-256 over source, headers (in order), all options, NVRTC version and architecture: equal keys
/// mean interchangeable binaries.
std::string contentKey(const KernelSource &source, std::string_view arch, std::string_view nvrtcVersion);
/// The same with the process-wide NVRTC; unavailable if there is none.
Result<std::string> contentKey(const KernelSource &source, std::string_view arch);

/// Compiles `source` for `arch` to PTX and cubin.
///   invalidArgument: the source has errors; the message is the first one, then a newline and the
///                    whole log.
///   unsupported:     this NVRTC does not know the architecture (the message lists those it knows)
///                    or an option.
///   internal:        NVRTC failed otherwise, or ptxas and the cubin contradict each other.
Result<Cubin> compile(const NvrtcLibrary &nvrtc, const KernelSource &source, std::string_view arch);

/// The same with the process-wide NVRTC; unavailable if there is none.
Result<Cubin> compile(const KernelSource &source, std::string_view arch);

/// Ok when the compiler did what the skeleton planned: no spill in any entry function and no "Potential Performance
/// Loss" note. Otherwise unsupported, with the reason; such a variant must not be offered.
Status checkVariant(const Cubin &cubin);

} // namespace heddle
