// Owns how NCCL is found: the library that HEDDLE_NCCL_LIBRARY names, else the libnccl.so.2 that the process has loaded
// already (as PyTorch does), else the one that the loader finds. A library is opened once per process and never closed.
#pragma once

#include "runtime/Core/Status.h"
#include "runtime/Distributed/NcclApi.h"

namespace heddle {

// NCCL's functions. Immutable after open; thread safe.
struct NcclLibrary {
  using Code = nccl::Code;
  using DataType = nccl::DataType;
  using Communicator = nccl::Communicator;
  using UniqueId = nccl::UniqueId;
  using Config = nccl::Config;
#define HEDDLE_DECLARE(member, symbol, ...) nccl::Code (*member)(__VA_ARGS__) = nullptr;
  HEDDLE_NCCL_FUNCTIONS(HEDDLE_DECLARE)
  HEDDLE_NCCL_OPTIONAL_FUNCTIONS(HEDDLE_DECLARE)
#undef HEDDLE_DECLARE
#define HEDDLE_DECLARE(member, symbol, ...) const char *(*member)(__VA_ARGS__) = nullptr;
  HEDDLE_NCCL_TEXTS(HEDDLE_DECLARE)
#undef HEDDLE_DECLARE
  int version = 0; // 23203 is NCCL 2.32.3
  std::string path;

  // unavailable: no such library, or a function missing; the message says what was looked for and what works. The
  // pointer is valid until the end of the process. A failure is not remembered.
  static Result<const NcclLibrary *> open();

  // Ok for success and for "in progress"; else "exchange: ncclGroupEnd failed: unhandled system error (...)" with what
  // NCCL says beyond its code. unavailable: the network, the system or another rank; invalidArgument: NCCL refuses the
  // call; internal: CUDA, and the rest.
  Status check(nccl::Code code, const char *operation, const char *call,
               nccl::Communicator communicator = nullptr) const;
  std::string versionText() const; // "2.32.3"
};

} // namespace heddle
