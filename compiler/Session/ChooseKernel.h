// Owns the order in which a call finds its kernel: changes to the default are compiled now, else the winner of the
// databases serves, else the default is compiled, also where the winner is for longer or shorter calls
// (ProblemBucket::areAsLong).
#pragma once

#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/KernelShape.h"
#include "runtime/Device/Device.h"
#include "runtime/Store/StoreStack.h"

namespace heddle {

struct KernelWanted {
  const PatternFile &file;
  const ProblemShape &shape;
  KernelShape kernel;
  std::string changes = {}; ///< to the default: compiled now, unless databases have this very code
  bool cutsBlocks = false;  ///< calls cut blocks of pairs, which stored kernels may rely on
};

struct ChosenKernel {
  KernelRecord record;
  std::string match;  ///< how a database matched, or "compiled now": the code is what would be
  std::string origin; ///< the same with the places; both in words
};

/// Failures are those of stores and compilation.
Result<ChosenKernel> chooseKernel(const KernelWanted &wanted, const StoreStack &stores, const Device &device);

} // namespace heddle
