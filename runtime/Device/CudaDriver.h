// Owns every driver type, constant and function signature that the runtime uses, and nothing else, so that
// programs build without a toolkit. tests/unit/device_cuda_h_test.cpp compares all of it with cuda.h where
// that header exists; add a line there for every constant added here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::cuda {

// The ABI types: handles are pointers to opaque structs, codes are int-sized enums.
using Code = int;
using DeviceOrdinal = int;
using DevicePointer = unsigned long long;
using Context = struct ContextStruct *;
using Module = struct ModuleStruct *;
using Function = struct FunctionStruct *;
using Stream = struct StreamStruct *;
using Event = struct EventStruct *;
using Graph = struct GraphStruct *;
using GraphNode = struct GraphNodeStruct *;
using GraphExec = struct GraphExecStruct *;
using UserObject = struct UserObjectStruct *;
using HostFunction = void (*)(void *); // CUhostFn
using MemPool = struct MemPoolStruct *;

// Headers before CUDA 13 ask for 64-byte alignment, later ones for 128.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParams {
  Function function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **params;
  void **extra;
  void *kernel; // in the place of a function
  Context context;
};

// CUDA_MEMSET_NODE_PARAMS
struct MemsetNodeParams {
  DevicePointer address;
  size_t pitch; // of more rows than one
  unsigned value, elementBytes;
  size_t width, height;
};

// CUDA_MEMCPY2D_v2
struct Copy2D {
  size_t fromX, fromY;
  int fromKind; // CUmemorytype
  const void *fromHost;
  DevicePointer from;
  void *fromArray;
  size_t fromPitch;
  size_t toX, toY;
  int toKind;
  void *toHost;
  DevicePointer to;
  void *toArray;
  size_t toPitch;
  size_t width, height; // bytes, rows
};

// CUmemPoolProps
struct MemPoolProps {
  int kind, handleTypes;
  int placeKind, place; // CUmemLocation
  void *security;
  size_t most; // 0: as the GPU has
  unsigned char reserved[56];
};

constexpr Code kSuccess = 0;
constexpr Code kErrorInvalidValue = 1;
constexpr Code kErrorOutOfMemory = 2;
constexpr Code kErrorNoDevice = 100;
constexpr Code kErrorInvalidImage = 200;
constexpr Code kErrorInvalidContext = 201;
constexpr Code kErrorNoBinaryForGpu = 209;
constexpr Code kErrorInvalidPtx = 218;
constexpr Code kErrorUnsupportedPtxVersion = 222;
constexpr Code kErrorInvalidHandle = 400;
constexpr Code kErrorNotReady = 600;

// CUdevice_attribute
constexpr int kAttributeMaxThreadsPerBlock = 1;
constexpr int kAttributeClockRate = 13;
constexpr int kAttributeMultiprocessorCount = 16;
constexpr int kAttributePciBusId = 33;
constexpr int kAttributePciDeviceId = 34;
constexpr int kAttributeMemoryClockRate = 36;
constexpr int kAttributeGlobalMemoryBusWidth = 37;
constexpr int kAttributeL2CacheSize = 38;
constexpr int kAttributePciDomainId = 50;
constexpr int kAttributeComputeMajor = 75;
constexpr int kAttributeComputeMinor = 76;
constexpr int kAttributePageableMemoryAccess = 88;
constexpr int kAttributeMaxSharedPerBlockOptin = 97;
constexpr int kAttributeMemoryPools = 115;
constexpr int kAttributeHostNumaId = 134; // of CUDA 12.2; -1: the machine has one node

// CUmemAllocationType, CUmemLocationType, CUmemPool_attribute
constexpr int kAllocationPinned = 1;
constexpr int kPlaceDevice = 1;
constexpr int kPoolReuseFollowsEvents = 1;
constexpr int kPoolReuseOpportunistic = 2;
constexpr int kPoolReuseInternalDependencies = 3;
constexpr int kPoolReleaseThreshold = 4;
constexpr int kPoolReserved = 5;

// CUpointer_attribute
constexpr int kPointerMemoryType = 2;
constexpr int kPointerDevicePointer = 3;
constexpr int kPointerDeviceOrdinal = 9;

// CUmemorytype
constexpr int kMemoryOfDevice = 2;

// CUfunction_attribute
constexpr int kFunctionMaxThreadsPerBlock = 0;
constexpr int kFunctionSharedBytes = 1;
constexpr int kFunctionMaxDynamicSharedBytes = 8;

// CUjit_option
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferBytes = 6;

// CUstreamCaptureStatus, CUstreamCaptureMode
constexpr int kCaptureStatusNone = 0;
constexpr int kCaptureModeRelaxed = 2;

constexpr unsigned kUserObjectNoDestructorSync = 1; // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
constexpr unsigned kGraphUserObjectMove = 1;        // CU_GRAPH_USER_OBJECT_MOVE

constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;

// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
constexpr int kTensorMapTf32 = 11;
constexpr int kTensorMapInterleaveNone = 0;
constexpr int kTensorMapSwizzleNone = 0;
constexpr int kTensorMapSwizzle32 = 1;
constexpr int kTensorMapSwizzle64 = 2;
constexpr int kTensorMapSwizzle128 = 3;
constexpr int kTensorMapL2Promotion256 = 3;
constexpr int kTensorMapFillZero = 0;

// X(member, exported symbol, parameter types...); every function returns a Code.
#define HEDDLE_CUDA_FUNCTIONS(X)                                                                                       \
  X(init, cuInit, unsigned)                                                                                            \
  X(driverGetVersion, cuDriverGetVersion, int *)                                                                       \
  X(getErrorName, cuGetErrorName, Code, const char **)                                                                 \
  X(getErrorString, cuGetErrorString, Code, const char **)                                                             \
  X(deviceGet, cuDeviceGet, DeviceOrdinal *, int)                                                                      \
  X(deviceGetCount, cuDeviceGetCount, int *)                                                                           \
  X(deviceGetName, cuDeviceGetName, char *, int, DeviceOrdinal)                                                        \
  X(deviceTotalMem, cuDeviceTotalMem_v2, size_t *, DeviceOrdinal)                                                      \
  X(deviceGetAttribute, cuDeviceGetAttribute, int *, int, DeviceOrdinal)                                               \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, Context *, DeviceOrdinal)                                              \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, DeviceOrdinal)                                                    \
  X(ctxGetCurrent, cuCtxGetCurrent, Context *)                                                                         \
  X(ctxPushCurrent, cuCtxPushCurrent_v2, Context)                                                                      \
  X(ctxPopCurrent, cuCtxPopCurrent_v2, Context *)                                                                      \
  X(ctxGetDevice, cuCtxGetDevice, DeviceOrdinal *)                                                                     \
  X(moduleLoadDataEx, cuModuleLoadDataEx, Module *, const void *, unsigned, int *, void **)                            \
  X(moduleUnload, cuModuleUnload, Module)                                                                              \
  X(moduleGetFunction, cuModuleGetFunction, Function *, Module, const char *)                                          \
  X(funcGetAttribute, cuFuncGetAttribute, int *, int, Function)                                                        \
  X(funcSetAttribute, cuFuncSetAttribute, Function, int, int)                                                          \
  X(launchKernel, cuLaunchKernel, Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
    Stream, void **, void **)                                                                                          \
  X(memAlloc, cuMemAlloc_v2, DevicePointer *, size_t)                                                                  \
  X(memFree, cuMemFree_v2, DevicePointer)                                                                              \
  X(memGetInfo, cuMemGetInfo_v2, size_t *, size_t *)                                                                   \
  X(memcpyToDevice, cuMemcpyHtoDAsync_v2, DevicePointer, const void *, size_t, Stream)                                 \
  X(memcpyToHost, cuMemcpyDtoHAsync_v2, void *, DevicePointer, size_t, Stream)                                         \
  X(memsetBytes, cuMemsetD8Async, DevicePointer, unsigned char, size_t, Stream)                                        \
  X(memsetWords, cuMemsetD32Async, DevicePointer, unsigned, size_t, Stream)                                            \
  X(streamCreate, cuStreamCreateWithPriority, Stream *, unsigned, int)                                                 \
  X(streamSynchronize, cuStreamSynchronize, Stream)                                                                    \
  X(streamDestroy, cuStreamDestroy_v2, Stream)                                                                         \
  X(eventCreate, cuEventCreate, Event *, unsigned)                                                                     \
  X(eventRecord, cuEventRecord, Event, Stream)                                                                         \
  X(eventQuery, cuEventQuery, Event)                                                                                   \
  X(eventSynchronize, cuEventSynchronize, Event)                                                                       \
  X(eventElapsedTime, cuEventElapsedTime, float *, Event, Event)                                                       \
  X(eventDestroy, cuEventDestroy_v2, Event)

// Those of tensor maps and of graphs are absent in drivers before CUDA 12; only kernels with tensor maps need the
// first, and prepared calls are graphs where the others are quick (LaunchGraph.cpp). The first two say what is wrong
// with an address or a stream. Who asks for the graph of a capture needs CUDA 12.3. Memory pools are absent before CUDA 11.2; only arenas need them. Memory of the host is
// pinned where calls are streamed.
#define HEDDLE_CUDA_OPTIONAL_FUNCTIONS(X)                                                                              \
  X(pointerGetAttribute, cuPointerGetAttribute, void *, int, DevicePointer)                                            \
  X(memHostRegister, cuMemHostRegister_v2, void *, size_t, unsigned)                                                   \
  X(memHostUnregister, cuMemHostUnregister, void *)                                                                    \
  X(streamWaitEvent, cuStreamWaitEvent, Stream, Event, unsigned)                                                       \
  X(memcpy2D, cuMemcpy2DAsync_v2, const Copy2D *, Stream)                                                              \
  X(streamGetCtx, cuStreamGetCtx, Stream, Context *)                                                                   \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled, TensorMap *, int, uint32_t, void *, const uint64_t *,                \
    const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int)                                          \
  X(streamIsCapturing, cuStreamIsCapturing, Stream, int *)                                                             \
  X(streamGetCaptureInfo, cuStreamGetCaptureInfo_v3, Stream, int *, uint64_t *, Graph *, const GraphNode **,           \
    const void **, size_t *)                                                                                           \
  X(userObjectCreate, cuUserObjectCreate, UserObject *, void *, HostFunction, unsigned, unsigned)                      \
  X(graphRetainUserObject, cuGraphRetainUserObject, Graph, UserObject, unsigned, unsigned)                             \
  X(threadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, int *)                                         \
  X(graphCreate, cuGraphCreate, Graph *, unsigned)                                                                     \
  X(graphDestroy, cuGraphDestroy, Graph)                                                                               \
  X(graphAddKernelNode, cuGraphAddKernelNode_v2, GraphNode *, Graph, const GraphNode *, size_t,                        \
    const KernelNodeParams *)                                                                                          \
  X(graphAddMemsetNode, cuGraphAddMemsetNode, GraphNode *, Graph, const GraphNode *, size_t, const MemsetNodeParams *, \
    Context)                                                                                                           \
  X(graphInstantiate, cuGraphInstantiateWithFlags, GraphExec *, Graph, unsigned long long)                             \
  X(graphLaunch, cuGraphLaunch, GraphExec, Stream)                                                                     \
  X(graphExecDestroy, cuGraphExecDestroy, GraphExec)                                                                   \
  X(memPoolCreate, cuMemPoolCreate, MemPool *, const MemPoolProps *)                                                   \
  X(memPoolDestroy, cuMemPoolDestroy, MemPool)                                                                         \
  X(memPoolSetAttribute, cuMemPoolSetAttribute, MemPool, int, void *)                                                  \
  X(memPoolGetAttribute, cuMemPoolGetAttribute, MemPool, int, void *)                                                  \
  X(memPoolTrimTo, cuMemPoolTrimTo, MemPool, size_t)                                                                   \
  X(memAllocFromPool, cuMemAllocFromPoolAsync, DevicePointer *, size_t, MemPool, Stream)                               \
  X(memFreeAsync, cuMemFreeAsync, DevicePointer, Stream)

} // namespace heddle::cuda
