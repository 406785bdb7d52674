// Owns every NCCL type, constant and function signature that the runtime uses, and nothing else, so that programs build
// without NCCL. tests/unit/nccl_h_test.cpp compares all of it with nccl.h where that header exists; add a line there
// for every constant added here.
#pragma once

#include "runtime/Device/CudaDriver.h"

#include <climits>
#include <cstddef>

namespace heddle::nccl {

using Code = int;
using DataType = int;
using Communicator = struct CommunicatorStruct *;

struct UniqueId {
  char internal[128];
};

constexpr Code kSuccess = 0;
constexpr Code kUnhandledCudaError = 1;
constexpr Code kSystemError = 2;
constexpr Code kInternalError = 3;
constexpr Code kInvalidArgument = 4;
constexpr Code kInvalidUsage = 5;
constexpr Code kRemoteError = 6;
constexpr Code kInProgress = 7;

constexpr DataType kUint8 = 1;

// The configuration as NCCL 2.18 has it: earlier versions read the front of it; later ones read as much as `size` says, take
// the rest, NVLink multicast among it, from their defaults and the environment, and look at no more fields than `version` had.
// What the environment says (NCCL_MAX_CTAS) comes before all of it.
constexpr unsigned kConfigMagic = 0xcafebeef;
constexpr unsigned kConfigVersion = 21800;
constexpr int kNotGiven = INT_MIN;
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = kConfigMagic;
  unsigned version = kConfigVersion;
  int blocking = 1;
  int cgaClusterSize = kNotGiven;
  int minCTAs = kNotGiven;
  int maxCTAs = kNotGiven;
  const char *netName = nullptr; // not given
  int splitShare = kNotGiven;    // 1: those that are split from it share its connections
  int padding = kNotGiven;
};

// X(member, exported symbol, parameter types...); every function returns a Code. All of them are in NCCL 2.7.
#define HEDDLE_NCCL_FUNCTIONS(X)                                                                                       \
  X(getVersion, ncclGetVersion, int *)                                                                                 \
  X(commCount, ncclCommCount, Communicator, int *)                                                                     \
  X(commUserRank, ncclCommUserRank, Communicator, int *)                                                               \
  X(commCuDevice, ncclCommCuDevice, Communicator, int *)                                                               \
  X(commGetAsyncError, ncclCommGetAsyncError, Communicator, Code *)                                                    \
  X(commAbort, ncclCommAbort, Communicator)                                                                            \
  X(commDestroy, ncclCommDestroy, Communicator)                                                                        \
  X(getUniqueId, ncclGetUniqueId, UniqueId *)                                                                          \
  X(groupStart, ncclGroupStart)                                                                                        \
  X(groupEnd, ncclGroupEnd)                                                                                            \
  X(send, ncclSend, const void *, size_t, DataType, int, Communicator, cuda::Stream)                                   \
  X(recv, ncclRecv, void *, size_t, DataType, int, Communicator, cuda::Stream)                                         \
  X(allGather, ncclAllGather, const void *, void *, size_t, DataType, Communicator, cuda::Stream)

// Communicators that never block are of NCCL 2.14, those that share connections of 2.18; one that exists already works without these.
#define HEDDLE_NCCL_OPTIONAL_FUNCTIONS(X)                                                                              \
  X(commInitRankConfig, ncclCommInitRankConfig, Communicator *, int, UniqueId, int, Config *)                          \
  X(commFinalize, ncclCommFinalize, Communicator)                                                                      \
  X(commSplit, ncclCommSplit, Communicator, int, int, Communicator *, Config *)

// X(member, exported symbol, parameter types...) of those that return text; the last one is optional.
#define HEDDLE_NCCL_TEXTS(X)                                                                                           \
  X(getErrorString, ncclGetErrorString, Code)                                                                          \
  X(getLastError, ncclGetLastError, Communicator)

} // namespace heddle::nccl
