#include "codegen/Cpu/CpuCall.h"
#include "runtime/Core/ElementConvert.h"

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

bool CpuCall::isKeyMajor(Role wanted) const {
  const bool isQuantized = role[size_t(Role::quantizedV)];
  return hasKeyMajorValues && wanted == (isQuantized ? Role::quantizedV : Role::v);
}

CpuStrides CpuCall::stridesOf(Role wanted) const {
  const RoleSpec &spec = specOf(wanted);
  const bool isTurned = isKeyMajor(wanted);
  const int64_t perHead = sizeOf(isTurned ? spec.rows : spec.dim), perRow = perHead * sizeOf(spec.heads),
                perBatch = perRow * sizeOf(isTurned ? spec.dim : spec.rows);
  CpuStrides strides = stride[size_t(wanted)].value_or(CpuStrides{perBatch, perRow, perHead});
  if (isTurned)
    strides[1] = 1;
  return strides;
}

int64_t CpuCall::stepOf(Role wanted) const {
  const RoleSpec &spec = specOf(wanted);
  if (!isKeyMajor(wanted))
    return 1;
  const std::optional<CpuStrides> &given = stride[size_t(wanted)];
  return given ? (*given)[1] : int64_t(sizeOf(spec.rows)) * sizeOf(spec.heads);
}

void CpuCall::load(Role from, int64_t offset, int64_t count, float *values) const {
  const int64_t step = stepOf(from), run = step == 1 ? count : 1;
  for (int64_t i = 0; i < count; i += run)
    loadElements(elementOf(from), as<void>(from), offset + i * step, run, values + i);
}

void CpuCall::store(Role to, DType dtype, const float *values, int64_t offset, int64_t count) const {
  const int64_t step = stepOf(to), run = step == 1 ? count : 1;
  for (int64_t i = 0; i < count; i += run)
    storeElements(dtype, values + i, run, as<void>(to), offset + i * step);
}

} // namespace heddle
