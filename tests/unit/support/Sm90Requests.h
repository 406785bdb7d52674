// Requests that the Hopper forward skeleton serves.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_SM90REQUESTS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_SM90REQUESTS_H

#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Forward/Sm90Config.h"
#include "codegen/Target/FindArch.h"

namespace heddle::test {

inline const std::vector<VariantRates> kLattices = {{1, {1, 1}}, {4, {1, 4}}};

inline KernelRequest requestFor(int64_t headDim, int64_t valueDim, DType dtype = DType::bf16) {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.headDim = headDim;
  request.valueDim = valueDim;
  request.elements = CallElements(dtype);
  return request;
}

/// Of fp32, whose products are those of tf32.
inline KernelRequest tf32RequestFor(int64_t headDim, int64_t valueDim) {
  KernelRequest request = requestFor(headDim, valueDim);
  request.elements = CallElements(DType::fp32, DType::fp32, Precision::tf32);
  return request;
}

inline Sm90Config defaultFor(const KernelRequest &request) { return sm90ForwardSkeleton().defaultConfig(request); }

} // namespace heddle::test

#endif
