// Limits: CUDA C++ Programming Guide, table "Technical specifications per compute capability".
// Models: the vendor's data sheets. Where a data sheet gives rates with sparsity, half of that is
// the dense rate kept here. Only tests/unit/gpu_arch_test.cpp repeats any of these numbers.
#include "codegen/Target/GpuArch.h"
#include "codegen/Target/GpuModel.h"

#include <algorithm>
#include <cctype>

namespace heddle {

bool GpuArch::runsOn(int gpuMajor, int gpuMinor) const {
  if (gpuMajor != major)
    return false;
  return isExact ? gpuMinor == minor : gpuMinor >= minor;
}

namespace {

constexpr int kKiB = 1024;
constexpr int64_t kMiB = 1024 * 1024;

//                                cp.async  tma    wgmma  fp8    clusters  vector adds
constexpr GpuFeatures kAmpere = {true, false, false, false, false, false};
constexpr GpuFeatures kAda = {true, false, false, true, false, false};
constexpr GpuFeatures kHopper = {true, true, false, true, true, true};
constexpr GpuFeatures kHopperFull = {true, true, true, true, true, true};
constexpr GpuFeatures kBlackwell = {true, true, false, true, true, true};

} // namespace

const std::vector<GpuArch> &gpuArchs() {
  // name, capability, exact, smem per block / SM / reserved, registers per SM / thread, threads
  // per block / SM, blocks per SM, features, reference
  static const std::vector<GpuArch> rows = {
      {"sm_80", 8, 0, false, 163 * kKiB, 164 * kKiB, kKiB, 65536, 255, 1024, 2048, 32, kAmpere, "a100"},
      {"sm_86", 8, 6, false, 99 * kKiB, 100 * kKiB, kKiB, 65536, 255, 1024, 1536, 16, kAmpere, "a10"},
      {"sm_89", 8, 9, false, 99 * kKiB, 100 * kKiB, kKiB, 65536, 255, 1024, 1536, 24, kAda, "l40s"},
      {"sm_90", 9, 0, false, 227 * kKiB, 228 * kKiB, kKiB, 65536, 255, 1024, 2048, 32, kHopper, "h100"},
      {"sm_90a", 9, 0, true, 227 * kKiB, 228 * kKiB, kKiB, 65536, 255, 1024, 2048, 32, kHopperFull, "h200"},
      {"sm_100", 10, 0, false, 227 * kKiB, 228 * kKiB, kKiB, 65536, 255, 1024, 2048, 32, kBlackwell, "b200"},
      {"sm_103", 10, 3, false, 227 * kKiB, 228 * kKiB, kKiB, 65536, 255, 1024, 2048, 32, kBlackwell, "b300"},
      {"sm_120", 12, 0, false, 99 * kKiB, 100 * kKiB, kKiB, 65536, 255, 1024, 1536, 24, kBlackwell, "rtx5090"},
  };
  return rows;
}

int portableSmemBytes() {
  int bytes = gpuArchs().front().smemPerBlockBytes;
  for (const GpuArch &arch : gpuArchs())
    bytes = std::min(bytes, arch.smemPerBlockBytes);
  return bytes;
}

const std::vector<GpuModel> &gpuModels() {
  // name, full name, arch, SMs, MHz, GB/s, bf16 and fp8 TFLOP/s, L2
  static const std::vector<GpuModel> rows = {
      {"a100", "NVIDIA A100-SXM4-80GB", "sm_80", 108, 1410, 2039, 311.9, 0.0, 40 * kMiB},
      {"a10", "NVIDIA A10", "sm_86", 72, 1695, 600, 125.0, 0.0, 6 * kMiB},
      {"rtx3090", "NVIDIA GeForce RTX 3090", "sm_86", 82, 1695, 936, 71.0, 0.0, 6 * kMiB},
      {"l40s", "NVIDIA L40S", "sm_89", 142, 2520, 864, 362.0, 724.0, 96 * kMiB},
      {"rtx4090", "NVIDIA GeForce RTX 4090", "sm_89", 128, 2520, 1008, 165.2, 330.4, 72 * kMiB},
      {"h100", "NVIDIA H100 80GB HBM3", "sm_90a", 132, 1830, 3350, 989.4, 1978.8, 50 * kMiB},
      {"h200", "NVIDIA H200", "sm_90a", 132, 1830, 4800, 989.4, 1978.8, 50 * kMiB},
      {"b200", "NVIDIA B200", "sm_100", 148, 1850, 8000, 2250.0, 4500.0, 126 * kMiB},
      {"b300", "NVIDIA B300", "sm_103", 148, 1850, 8000, 2250.0, 4500.0, 126 * kMiB},
      {"rtx5090", "NVIDIA GeForce RTX 5090", "sm_120", 170, 2407, 1792, 209.5, 419.0, 96 * kMiB},
  };
  return rows;
}

double GpuModel::matrixTflops(DType dtype, Precision precision) const {
  constexpr double kProductsOfExact = 3, kBf16OverTf32 = 2;
  if (dtype == DType::fp32)
    return bf16Tflops / (precision == Precision::exact ? kProductsOfExact : kBf16OverTf32);
  return dtype == DType::e4m3 && fp8Tflops > 0 ? fp8Tflops : bf16Tflops;
}

namespace {

std::string archNames() {
  std::string names;
  for (const GpuArch &arch : gpuArchs())
    names.append(names.empty() ? "" : ", ").append(arch.name);
  return names;
}

std::string modelNames() {
  std::string names;
  for (const GpuModel &model : gpuModels())
    names.append(names.empty() ? "" : ", ").append(model.name);
  return names;
}

std::string squeezed(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c != ' ' && c != '-')
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

const GpuArch *archOrNull(std::string_view name) {
  for (const GpuArch &arch : gpuArchs())
    if (arch.name == name)
      return &arch;
  return nullptr;
}

const GpuModel *modelOrNull(std::string_view name) {
  const std::string wanted = squeezed(name);
  for (const GpuModel &model : gpuModels())
    if (squeezed(model.name) == wanted || squeezed(model.fullName) == wanted)
      return &model;
  return nullptr;
}

} // namespace

Result<const GpuArch *> findGpuArch(std::string_view name) {
  if (const GpuArch *arch = archOrNull(name))
    return arch;
  return Status::notFound("no GPU architecture '" + std::string(name) + "'; there is " + archNames());
}

Result<const GpuModel *> findGpuModel(std::string_view name) {
  if (const GpuModel *model = modelOrNull(name))
    return model;
  if (const GpuArch *arch = archOrNull(name))
    return modelOrNull(arch->referenceGpu);
  return Status::notFound("no GPU '" + std::string(name) + "'; there is " + modelNames() + ", and the architectures " +
                          archNames());
}

Result<const GpuArch *> findGpuArchFor(int major, int minor) {
  const GpuArch *best = nullptr;
  for (const GpuArch &arch : gpuArchs()) {
    if (!arch.runsOn(major, minor))
      continue;
    if (!best || arch.isExact || arch.minor > best->minor)
      best = &arch;
  }
  if (best)
    return best;
  return Status::notFound("no architecture serves compute capability " + std::to_string(major) + "." +
                          std::to_string(minor) + "; there is " + archNames());
}

std::vector<std::string> gpuArchNames() {
  std::vector<std::string> names;
  for (const GpuArch &arch : gpuArchs())
    names.emplace_back(arch.name);
  return names;
}

std::string archName(const GpuArch &arch) { return std::string(arch.name); }

const GpuArch &baselineGpuArch() { return gpuArchs().front(); }

} // namespace heddle
