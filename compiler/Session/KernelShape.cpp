//===- KernelShape.cpp - what is fixed beside the pattern -----------------===//
#include "compiler/Session/KernelShape.h"
#include "codegen/Target/FindArch.h"

namespace heddle {

Result<const GpuArch *> archNamed(std::string_view name) { return findGpuArch(name); }
std::vector<std::string> archNames() { return gpuArchNames(); }

std::string KernelShape::archName() const { return heddle::archName(*arch); }

} // namespace heddle
