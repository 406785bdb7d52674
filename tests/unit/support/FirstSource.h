// The source of the kernel of a call's first launch.
#pragma once

#include "codegen/Nvrtc/KernelSource.h"
#include "compiler/Session/CompileSession.h"

namespace heddle::test {

/// As variantSources takes them.
template <class Wanted, class Config>
Result<KernelSource> firstSource(const PreparedPattern &prepared, const Wanted &wanted, const Config &config) {
  HEDDLE_ASSIGN(std::vector<KernelSource> sources, variantSources(prepared, wanted, config));
  return std::move(sources.front());
}

} // namespace heddle::test
