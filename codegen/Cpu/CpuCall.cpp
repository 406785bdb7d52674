//===- CpuCall.cpp - sizes and strides by role ------------------------------===//
#include "codegen/Cpu/CpuCall.h"

#include <iterator>

namespace heddle {

constexpr int32_t CpuCall::*kSizes[] = {&CpuCall::seqlenQ, &CpuCall::seqlenK,  &CpuCall::heads,
                                        &CpuCall::kvHeads, &CpuCall::headDim,  &CpuCall::valueDim,
                                        nullptr,           &CpuCall::batch,    &CpuCall::sequences,
                                        &CpuCall::pages,   &CpuCall::pageSize, &CpuCall::maxPages};

int32_t &CpuCall::sizeOf(RoleExtent extent) { return this->*kSizes[size_t(extent)]; }

void CpuCall::setSizes(const std::function<int64_t(RoleExtent)> &sizeIn) {
  for (size_t extent = 0; extent < std::size(kSizes); ++extent)
    if (kSizes[extent])
      this->*kSizes[extent] = int32_t(sizeIn(RoleExtent(extent)));
}

float CpuCall::descaleOf(Role factors, int32_t batch, int32_t head) const {
  const float *all = as<float>(factors);
  return all ? all[int64_t(batch) * sizeOf(specOf(factors).heads) + head] : 1.0f;
}

CpuStrides CpuCall::stridesOf(Role wanted) const {
  const RoleSpec &spec = specOf(wanted);
  const int64_t perHead = sizeOf(spec.dim), perRow = perHead * sizeOf(spec.heads);
  return stride[size_t(wanted)].value_or(CpuStrides{perRow * sizeOf(spec.rows), perRow, perHead});
}

} // namespace heddle
