#include "support/ServedShapes.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/FindArch.h"

namespace heddle::test {

KernelShape shapeServedBy(const std::string &skeleton) {
  KernelShape shape;
  for (const std::string &name : gpuArchNames())
    if (const GpuArch *arch = *findGpuArch(name); (*findSkeleton(skeleton))->servesArch(*arch))
      shape.arch = arch;
  return shape;
}

} // namespace heddle::test
