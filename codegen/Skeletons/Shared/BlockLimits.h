// Rules that families share, as entries of their lists of constraints, and numbers and rows as their reasons and their
// layouts write them. A family brings its struct of a configuration, and functions that say what one takes.
#pragma once

#include "codegen/Config/Constraint.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"

namespace heddle {

struct GpuArch;
class TraitsPrinter;

using Reason = std::optional<std::string>;

inline std::string number(int64_t value) { return std::to_string(value); }
inline int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// What a row takes in shared memory, where threads copy rows.
inline int64_t rowBytes(const KernelRequest &request, int64_t columns) {
  return roundUp(columns * request.element().bytes, SmemLayout::kAlignmentBytes);
}

/// Likewise a row of k or v, whose elements may have fewer bytes.
inline int64_t keyRowBytes(const KernelRequest &request, int64_t columns) {
  return roundUp(columns * traitsOf(request.elements.k).bytes, SmemLayout::kAlignmentBytes);
}
/// unsupported: k and v are e4m3 beside another q, and the GPU does not convert that.
Status checkScaledKeys(const KernelRequest &request);

/// Of q and k, and of v, for the device; where k and v are of fewer bytes, how many these are, and of rows of k.
void printRowBytes(TraitsPrinter &printer, const KernelRequest &request);

/// Registers of a thread that `minBlocks` blocks on an SM leave.
int64_t allowedRegisters(const GpuArch &arch, int64_t threads, int64_t minBlocks);

Reason whyNoThreads(const GpuArch &arch, int64_t threads, int64_t minBlocks);
Reason whyNoSmem(const GpuArch &arch, int64_t bytes);
Reason whyNotPortable(int64_t smemBytes);
Reason whyNoSmemOfBlocks(const GpuArch &arch, int64_t bytes, int64_t minBlocks);
Reason whyNoRegisters(const GpuArch &arch, int64_t least, int64_t threads, int64_t minBlocks);

template <class C> Reason threadsFit(const KernelRequest &request, const C &config) {
  return whyNoThreads(*request.arch, config.threads(), config.minBlocks);
}

template <class C, SmemLayout (*layoutOf)(const KernelRequest &, const C &)>
Reason smemFits(const KernelRequest &request, const C &config) {
  return whyNoSmem(*request.arch, layoutOf(request, config).totalBytes());
}

template <class C, SmemLayout (*layoutOf)(const KernelRequest &, const C &)>
Reason smemIsPortable(const KernelRequest &request, const C &config) {
  return whyNotPortable(layoutOf(request, config).totalBytes());
}

template <class C, SmemLayout (*layoutOf)(const KernelRequest &, const C &)>
Reason smemOfBlocksFits(const KernelRequest &request, const C &config) {
  return whyNoSmemOfBlocks(*request.arch, layoutOf(request, config).totalBytes(), config.minBlocks);
}

template <class C, int64_t (*leastRegisters)(const KernelRequest &, const C &)>
Reason registersFit(const KernelRequest &request, const C &config) {
  return whyNoRegisters(*request.arch, leastRegisters(request, config), config.threads(), config.minBlocks);
}

} // namespace heddle
