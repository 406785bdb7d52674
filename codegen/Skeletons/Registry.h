//===- Registry.h - the skeletons by variable ------------------------------------------------===//
//
// One declaration per skeleton, defined in its own file. Which there are is what files there are:
// codegen/Config/CMakeLists.txt makes the list.
//
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_SKELETONS_REGISTRY_H
#define HEDDLE_CODEGEN_SKELETONS_REGISTRY_H

#include "codegen/Skeletons/Skeleton.h"

namespace heddle {

#define HEDDLE_SKELETON(accessor) const Skeleton &accessor();
#include "codegen/Skeletons/heddle_skeletons.inc"
#undef HEDDLE_SKELETON

} // namespace heddle

#endif // HEDDLE_CODEGEN_SKELETONS_REGISTRY_H
