//===- ServedShapes.h - shapes on architectures that skeletons serve -----------===//
// Apart from its users, so that large tests need not be built again when architectures change.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_SERVEDSHAPES_H
#define HEDDLE_TESTS_UNIT_SUPPORT_SERVEDSHAPES_H

#include "compiler/Session/KernelShape.h"

#include <string>

namespace heddle::test {

/// Head dims of 64 on the last listed architecture whose instructions the skeleton is made of.
KernelShape shapeServedBy(const std::string &skeleton);

} // namespace heddle::test

#endif
