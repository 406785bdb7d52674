//===- Registry.h - the skeletons by variable ------------------------------------------------===//
//
// One declaration per skeleton, defined in its own file; Registry.cpp lists them in order of
// preference. tests/architecture fails if a skeleton file is not listed.
//
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_SKELETONS_REGISTRY_H
#define HEDDLE_CODEGEN_SKELETONS_REGISTRY_H

#include "codegen/Skeletons/Skeleton.h"

namespace heddle {

const Skeleton &portableForwardSkeleton();
const Skeleton &sm90ForwardSkeleton();

} // namespace heddle

#endif // HEDDLE_CODEGEN_SKELETONS_REGISTRY_H
