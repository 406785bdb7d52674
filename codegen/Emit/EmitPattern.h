// Owns the way from a pattern's module of functions to the text that a skeleton includes: the
// functions themselves through EmitC, then `struct Pattern` around them.
#pragma once

#include "codegen/Emit/PatternModule.h"
#include <string>

namespace heddle {

// How a tanh that bounds scores is written: in the digits that products of 16-bit numbers and of tf32 have
// (FastTanh.cpp), or as the library has it.
enum class BoundedScores { fast, exact };

// The text of the generated functions, PatternContext, KeyRange and Pattern. The module is left as
// it is; equal modules give equal bytes. Fails with diagnostics at the op that has no C++ form, or
// when the module is not what verifyPatternModule wants. Loads the dialects that it needs into the
// module's context, so it must not run while another thread uses that context.
mlir::FailureOr<std::string> emitPatternFunctions(mlir::ModuleOp module, const PatternInfo &info,
                                                  BoundedScores bounded = BoundedScores::fast);

// What the two functions of an argument read that scores have a derivative by.
struct ArgumentGradientTraits {
  int argument;
  bool derivativeReadsScore;
  bool placeReadsQuery, placeReadsKey;
};

// What skeletons learn of a pattern's functions.
struct PatternTraits {
  std::vector<bool> branchesWithWords; // of kept columns
  bool hasBandColumns = false;
  bool hasDocumentRows = false;
  bool isTransposed = false;                     // Pattern has a TransposedPattern
  std::vector<bool> transposedBranchesWithWords; // and its kept columns
  bool hasTransposedBandColumns = false;
  bool hasScoreDocument = false;
  bool hasScoreGradient = false;
  std::vector<ArgumentGradientTraits> argumentGradients;
  bool asksTogether = false; // nextRange must be called by all lanes of a warp together
};

// The wrapper part alone.
std::string patternWrapperText(const PatternInfo &info, const PatternTraits &traits);

// Owns the order of the parts of a kernel source (docs/architecture.md, section 3): provenance,
// prelude, KernelTraits, generated functions, skeleton, the kernel and what is exported of it.

struct KernelSourceParts {
  std::string patternName;
  std::string config;       // the configuration in words, for the header comment; may have several lines
  std::string generator;    // name and version of the generator
  std::string traits;       // the text of `struct KernelTraits`
  std::string pattern;      // from emitPatternFunctions
  std::string instructions; // the file of instruction wrappers that a chain of scores calls; empty without one
  std::string skeleton;     // the file of the kernel, as #include spells it
  std::string kernels; // the text of `Kernel`, which that file makes of traits and pattern, and of what is exported
};

// The whole source, to be compiled with the files of codegen/Skeletons at hand. It names no time, path
// or machine: equal parts give equal bytes.
std::string assembleKernelSource(const KernelSourceParts &parts);

} // namespace heddle
