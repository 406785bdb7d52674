// Owns what the skeleton of rotated rows adds to quantize, whose knobs, constraints, launch and kernel it has: its kind, by which
// that tells the two apart. Change it together with quantize_rotated.cuh.
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/Sibling.h"

namespace heddle {
namespace {

class QuantizeRotated final : public Sibling<KindBase::quantizeRotated, quantizeSkeleton> {
public:
  QuantizeRotated() : Sibling("quantize_rotated") {}
};

} // namespace

const Skeleton &quantizeRotatedSkeleton() { return theOnly<QuantizeRotated>(); }

} // namespace heddle
