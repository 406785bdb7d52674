//===- NoCpuAttention.cpp - the processors, where libheddle is not there ----===//
#include "Attention.h"

namespace server {

api::Result<std::unique_ptr<Attention>> attentionOnProcessors(const AttentionShape &, int) {
  return api::Status(HEDDLE_UNSUPPORTED,
                     "built over libheddle_runtime, which runs kernels on GPUs only; give --kernels, "
                     "or build it with find_package(heddle) for the processors");
}

} // namespace server
