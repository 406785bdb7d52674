#include "compiler/Measure/MatrixRoof.h"
#include "compiler/Io/RandomTensor.h"

#include <cstdlib>
#include <dlfcn.h>

namespace heddle {
namespace {

// These are numbers of cublas_api.h and library_types.h, part of cuBLAS's binary interface.
constexpr int kOpN = 0, kOpT = 1, kTypeBf16 = 14, kCompute32F = 68, kDefaultAlgorithm = -1;
using Create = int (*)(void **);
using Destroy = int (*)(void *);
using GemmEx = int (*)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                       const void *, void *, int, int, int, int);

void *openLibrary(std::string &tried) {
  std::vector<std::string> places = {"libcublas.so.13", "libcublas.so"};
  if (const char *home = std::getenv("CUDA_HOME"))
    places.insert(places.begin(), std::string(home) + "/lib64/libcublas.so");
  places.push_back("/usr/local/cuda/lib64/libcublas.so");
  for (const std::string &place : places) {
    if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  return nullptr;
}

/// Random bytes of a small block, repeated: the tensor cores see random operands.
Result<DeviceBuffer> randomMatrix(const Device &device, int64_t elements, const char *name) {
  HostTensor block = randomNormalTensor(kDefaultDType, {int64_t(1) << 20}, 1, name);
  int64_t blockBytes = block.data.size(), bytes = elements * 2;
  HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
  for (int64_t offset = 0; offset < bytes; offset += blockBytes)
    HEDDLE_TRY(buffer.copyFrom(block.data.data(), std::min(blockBytes, bytes - offset), offset));
  return buffer;
}

} // namespace

struct MatrixRoof::Impl {
  void *handle = nullptr;
  GemmEx gemm = nullptr;
  Destroy destroy = nullptr;
  DeviceBuffer a, b, c;
  ~Impl() {
    if (handle)
      destroy(handle);
  }
};

MatrixRoof::MatrixRoof(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
MatrixRoof::MatrixRoof(MatrixRoof &&) noexcept = default;
MatrixRoof::~MatrixRoof() = default;

Result<MatrixRoof> MatrixRoof::create(const Device &device) {
  std::string tried;
  void *library = openLibrary(tried);
  if (!library)
    return Status::unavailable("no cuBLAS for the matrix product, tried " + tried);
  auto impl = std::make_unique<Impl>();
  auto create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
  impl->destroy = reinterpret_cast<Destroy>(dlsym(library, "cublasDestroy_v2"));
  impl->gemm = reinterpret_cast<GemmEx>(dlsym(library, "cublasGemmEx"));
  if (!create || !impl->destroy || !impl->gemm)
    return Status::unavailable("cuBLAS lacks cublasCreate_v2, cublasDestroy_v2 or cublasGemmEx");
  if (int error = create(&impl->handle))
    return Status::unavailable("cublasCreate_v2 failed with status " + std::to_string(error));
  HEDDLE_ASSIGN(impl->a, randomMatrix(device, kSize * kSize, "a"));
  HEDDLE_ASSIGN(impl->b, randomMatrix(device, kSize * kSize, "b"));
  HEDDLE_ASSIGN(impl->c, DeviceBuffer::allocate(device, kSize * kSize * 2));
  return MatrixRoof(std::move(impl));
}

Status MatrixRoof::launch() {
  float alpha = 1, beta = 0;
  int n = kSize;
  int error = impl->gemm(impl->handle, kOpT, kOpN, n, n, n, &alpha, impl->a.data(), kTypeBf16, n, impl->b.data(),
                         kTypeBf16, n, &beta, impl->c.data(), kTypeBf16, n, kCompute32F, kDefaultAlgorithm);
  if (error)
    return Status::internal("cublasGemmEx failed with status " + std::to_string(error));
  return {};
}

} // namespace heddle
