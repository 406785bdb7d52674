//===- CpuCall.cpp - sizes and strides by role ------------------------------===//
#include "codegen/Cpu/CpuCall.h"

namespace heddle {

int32_t &CpuCall::sizeOf(RoleExtent extent) {
  int32_t *const sizes[] = {&seqlenQ, &seqlenK, &heads,     &kvHeads, &headDim,  &valueDim,
                            nullptr,  &batch,   &sequences, &pages,   &pageSize, &maxPages};
  return *sizes[size_t(extent)];
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
