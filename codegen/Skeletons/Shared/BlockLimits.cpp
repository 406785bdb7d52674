#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {

static Reason whyMore(int64_t need, int64_t most, const std::string &who) {
  if (need <= most)
    return std::nullopt;
  return "need " + number(need) + " B, " + who + " " + number(most) + " B";
}

static std::string blocksOf(int64_t threads, int64_t minBlocks) {
  return number(minBlocks) + " blocks of " + number(threads) + " threads";
}

void printRowBytes(TraitsPrinter &printer, const KernelRequest &request) {
  printer.constant("kSmemRowBytesQK", rowBytes(request, request.headDim));
  printer.constant("kSmemRowBytesV", keyRowBytes(request, request.valueDim));
  if (!request.elements.hasScaledKeys())
    return;
  printer.constant("kKeyBytes", traitsOf(request.elements.k).bytes);
  printer.constant("kSmemRowBytesK", keyRowBytes(request, request.headDim));
}

Status checkScaledKeys(const KernelRequest &request) {
  if (!request.elements.hasScaledKeys() || request.arch->features.hasFp8Mma)
    return {};
  return Status::unsupported("turns k and v of e4m3 into fp16 by instructions that " + archName(*request.arch) +
                             " lacks; there k and v of bf16 or fp16 are served");
}

int64_t allowedRegisters(const GpuArch &arch, int64_t threads, int64_t minBlocks) {
  return std::min<int64_t>(arch.maxRegistersPerThread, arch.registersPerSm / (threads * minBlocks));
}

Reason whyNoThreads(const GpuArch &arch, int64_t threads, int64_t minBlocks) {
  const std::string allows = std::string(arch.name) + " allows ";
  if (threads > arch.maxThreadsPerBlock)
    return "need " + number(threads) + " threads, " + allows + number(arch.maxThreadsPerBlock) + " per block";
  if (threads * minBlocks > arch.maxThreadsPerSm || minBlocks > arch.maxBlocksPerSm)
    return blocksOf(threads, minBlocks) + ", " + allows + number(arch.maxThreadsPerSm) + " threads and " +
           number(arch.maxBlocksPerSm) + " blocks per SM";
  return std::nullopt;
}

Reason whyNoSmem(const GpuArch &arch, int64_t bytes) {
  return whyMore(bytes, arch.smemPerBlockBytes, std::string(arch.name) + " allows");
}

Reason whyNotPortable(int64_t smemBytes) { return whyMore(smemBytes, portableSmemBytes(), "the least of all GPUs is"); }

Reason whyNoSmemOfBlocks(const GpuArch &arch, int64_t bytes, int64_t minBlocks) {
  const Reason reason = whyMore(minBlocks * (bytes + arch.smemReservedBytes), arch.smemPerSmBytes,
                                "an SM of " + std::string(arch.name) + " has");
  return reason ? number(minBlocks) + " blocks " + *reason : reason;
}

Reason whyNoRegisters(const GpuArch &arch, int64_t least, int64_t threads, int64_t minBlocks) {
  const int64_t allowed = allowedRegisters(arch, threads, minBlocks);
  if (least <= allowed)
    return std::nullopt;
  return "need at least " + number(least) + " registers per thread, " + std::string(arch.name) + " leaves " +
         number(allowed) + " with " + blocksOf(threads, minBlocks);
}

} // namespace heddle
