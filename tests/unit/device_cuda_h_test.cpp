//===- device_cuda_h_test.cpp - our declarations against cuda.h -------------===//
// Everything here is checked by the compiler; where cuda.h does not exist the test says that it was skipped.
#include "runtime/Core/DType.h"
#include "runtime/Device/CudaDriver.h"

#include <doctest/doctest.h>

#if __has_include(<cuda.h>)
#include "same_signature.h"

#include <cuda.h>

namespace {

namespace ours {
using namespace heddle::cuda;
#define HEDDLE_CHECK(member, symbol, ...)                                                                              \
  static_assert(heddle::test::Signature<void(__VA_ARGS__), std::remove_pointer_t<decltype(&::symbol)>>::matches(),     \
                #symbol);
HEDDLE_CUDA_FUNCTIONS(HEDDLE_CHECK)
HEDDLE_CUDA_OPTIONAL_FUNCTIONS(HEDDLE_CHECK)
#undef HEDDLE_CHECK
} // namespace ours

#define HEDDLE_SAME(name, value) static_assert(int64_t(heddle::cuda::name) == int64_t(value), #name)
HEDDLE_SAME(kSuccess, CUDA_SUCCESS);
HEDDLE_SAME(kErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
HEDDLE_SAME(kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
HEDDLE_SAME(kErrorNoDevice, CUDA_ERROR_NO_DEVICE);
HEDDLE_SAME(kErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
HEDDLE_SAME(kErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
HEDDLE_SAME(kErrorInvalidPtx, CUDA_ERROR_INVALID_PTX);
HEDDLE_SAME(kErrorUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
HEDDLE_SAME(kErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
HEDDLE_SAME(kErrorInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
HEDDLE_SAME(kAttributePageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
HEDDLE_SAME(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
HEDDLE_SAME(kPointerDevicePointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
HEDDLE_SAME(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
HEDDLE_SAME(kErrorNotReady, CUDA_ERROR_NOT_READY);
HEDDLE_SAME(kAttributeMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
HEDDLE_SAME(kAttributeClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
HEDDLE_SAME(kAttributeMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
HEDDLE_SAME(kAttributeMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
HEDDLE_SAME(kAttributeGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
HEDDLE_SAME(kAttributeL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
HEDDLE_SAME(kAttributeComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
HEDDLE_SAME(kAttributeComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
HEDDLE_SAME(kAttributeMaxSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
HEDDLE_SAME(kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
HEDDLE_SAME(kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
HEDDLE_SAME(kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
HEDDLE_SAME(kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
HEDDLE_SAME(kJitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
HEDDLE_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
HEDDLE_SAME(kEventDefault, CU_EVENT_DEFAULT);
static_assert(heddle::traitsOf(heddle::DType::bf16).tensorMapType == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(heddle::traitsOf(heddle::DType::fp16).tensorMapType == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(heddle::traitsOf(heddle::DType::fp32).tensorMapType == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(heddle::traitsOf(heddle::DType::i32).tensorMapType == CU_TENSOR_MAP_DATA_TYPE_INT32);
static_assert(heddle::traitsOf(heddle::DType::i64).tensorMapType == CU_TENSOR_MAP_DATA_TYPE_INT64);
HEDDLE_SAME(kTensorMapTf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
HEDDLE_SAME(kTensorMapInterleaveNone, CU_TENSOR_MAP_INTERLEAVE_NONE);
HEDDLE_SAME(kTensorMapSwizzleNone, CU_TENSOR_MAP_SWIZZLE_NONE);
HEDDLE_SAME(kTensorMapSwizzle32, CU_TENSOR_MAP_SWIZZLE_32B);
HEDDLE_SAME(kTensorMapSwizzle64, CU_TENSOR_MAP_SWIZZLE_64B);
HEDDLE_SAME(kTensorMapSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
HEDDLE_SAME(kTensorMapL2Promotion256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
HEDDLE_SAME(kTensorMapFillZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
static_assert(sizeof(heddle::cuda::TensorMap) == sizeof(CUtensorMap) &&
              alignof(heddle::cuda::TensorMap) >= alignof(CUtensorMap));
static_assert(sizeof(heddle::cuda::DevicePointer) == sizeof(CUdeviceptr));
HEDDLE_SAME(kAttributeMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
HEDDLE_SAME(kAttributeHostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
HEDDLE_SAME(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
HEDDLE_SAME(kPlaceDevice, CU_MEM_LOCATION_TYPE_DEVICE);
HEDDLE_SAME(kPoolReuseFollowsEvents, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
HEDDLE_SAME(kPoolReuseOpportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
HEDDLE_SAME(kPoolReuseInternalDependencies, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
HEDDLE_SAME(kPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
HEDDLE_SAME(kPoolReserved, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
static_assert(sizeof(heddle::cuda::MemPoolProps) == sizeof(CUmemPoolProps));
static_assert(offsetof(heddle::cuda::MemPoolProps, handleTypes) == offsetof(CUmemPoolProps, handleTypes));
static_assert(offsetof(heddle::cuda::MemPoolProps, placeKind) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(heddle::cuda::MemPoolProps, place) ==
              offsetof(CUmemPoolProps, location) + offsetof(CUmemLocation, id));
static_assert(offsetof(heddle::cuda::MemPoolProps, security) == offsetof(CUmemPoolProps, win32SecurityAttributes));

} // namespace

TEST_CASE("the declared driver interface is cuda.h's") {}

#else

TEST_CASE("the declared driver interface is cuda.h's (skipped: this machine has no cuda.h)" * doctest::skip()) {}

#endif
