#include "codegen/Cpu/CpuCall.h"

namespace heddle {

constexpr int32_t CpuCall::*kMembers[] = {
#define HEDDLE_CPU_SIZE(identifier, ...) &CpuCall::identifier,
    HEDDLE_SIZES(HEDDLE_CPU_SIZE, HEDDLE_CPU_SIZE)
#undef HEDDLE_CPU_SIZE
};

int32_t &CpuCall::sizeOf(RoleExtent extent) { return this->*kMembers[size_t(extent)]; }

void CpuCall::setSizes(const std::function<int64_t(RoleExtent)> &sizeIn) {
  for (const SizeSpec &size : kSizes)
    sizeOf(size.size) = int32_t(sizeIn(size.size));
}

float CpuCall::descaleOf(Role factors, int32_t batch, int32_t head, int64_t row) const {
  const float *all = as<float>(factors);
  const RoleSpec &spec = specOf(factors);
  const bool hasBlocks = spec.rows != RoleExtent::one && elements.scaleRows > 0;
  const int64_t blocks = hasBlocks ? sizeOf(spec.rows) : 1, block = hasBlocks ? row / elements.scaleRows : 0;
  return all ? all[(int64_t(batch) * sizeOf(spec.heads) + head) * blocks + block] : 1.0f;
}

CpuStrides CpuCall::stridesOf(Role wanted) const {
  const RoleSpec &spec = specOf(wanted);
  const int64_t perHead = sizeOf(spec.dim), perRow = perHead * sizeOf(spec.heads);
  return stride[size_t(wanted)].value_or(CpuStrides{perRow * sizeOf(spec.rows), perRow, perHead});
}

} // namespace heddle
