//===- KernelShape.cpp - what is fixed beside the pattern -----------------===//
#include "compiler/Driver/KernelShape.h"
#include "codegen/Target/FindArch.h"

namespace heddle {

std::string KernelShape::archName() const { return heddle::archName(*arch); }

} // namespace heddle
