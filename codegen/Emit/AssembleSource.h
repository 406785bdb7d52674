//===- AssembleSource.h - one CUDA source from its parts ----------------------===//
// Owns the order of the parts of a kernel source (docs/architecture.md, section 3): provenance,
// prelude, KernelTraits, generated functions, skeleton.
#pragma once

#include <string>

namespace heddle {

struct KernelSourceParts {
  std::string patternName;
  std::string config;       // the configuration in words, for the header comment; may have several lines
  std::string generator;    // name and version of the generator
  std::string traits;       // the text of `struct KernelTraits`
  std::string pattern;      // from emitPatternFunctions
  std::string instructions; // the file of instruction wrappers that a chain of scores calls; empty without one
  std::string skeleton;     // the file that defines heddle_kernel, as #include spells it
};

// The whole source, to be compiled with the files of codegen/Skeletons at hand. It names no time, path
// or machine: equal parts give equal bytes.
std::string assembleKernelSource(const KernelSourceParts &parts);

} // namespace heddle
