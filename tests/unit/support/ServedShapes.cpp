#include "support/ServedShapes.h"
#include "codegen/Skeletons/Skeleton.h"
#include "codegen/Target/GpuArch.h"

namespace heddle::test {

KernelShape shapeServedBy(const std::string &skeleton) {
  KernelShape shape;
  for (const GpuArch &arch : gpuArchs())
    if ((*findSkeleton(skeleton))->servesArch(arch))
      shape.arch = &arch;
  return shape;
}

} // namespace heddle::test
