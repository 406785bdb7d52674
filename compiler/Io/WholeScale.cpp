#include "compiler/Io/WholeScale.h"

#include "runtime/Core/CallChecks.h"

namespace heddle {

Status spreadScale(const KindRole &role, RoleTensors &tensors) {
  HostTensor &given = tensors.of(role.role);
  if (!given.shape.empty())
    return {};
  const RoleSpec spec = specOf(role);
  const HostTensor &of = tensors.of(scaledBy(role.role));
  if (role.presence != Presence::scale || spec.lead != RoleExtent::batch || of.shape.size() != 4 ||
      given.dtype != DType::fp32)
    return Status::invalidArgument(describe(spec.name, given) + "; expected " + std::to_string(extentsOf(spec).size()) +
                                   " dimensions");
  const float value = given.get(0);
  given = HostTensor::zeros(DType::fp32, {of.shape[0], of.shape[2]});
  for (int64_t i = 0; i < given.elements(); ++i)
    given.set(i, value);
  return {};
}

} // namespace heddle
