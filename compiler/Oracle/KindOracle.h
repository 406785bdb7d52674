//===- KindOracle.h - calls of every kind from their definitions -----------===//
// Owns the list of the definitions: `<kind>Oracle` for each line of HEDDLE_KINDS, in fp64, and what they say of a
// result.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Oracle/AttentionOracle.h"

namespace heddle::oracle {

/// Of what a call writes under one role. A NaN is an infinite error.
struct RoleReport {
  Role role = Role::out;
  std::string argument = {}; ///< of the pattern, whose gradient this is instead; its elements are rows of `worst`
  double maxError = 0, allowedError = 0;
  RowId worst; ///< where maxError was found

  bool isOk() const { return maxError <= allowedError; }
  std::string name() const { return argument.empty() ? specOf(role).name : "d_" + argument; }
};

struct KindReport {
  int64_t rowsChecked = 0, keysChecked = 0; ///< keys: of gradients, whose `worst` is then one
  std::string note = {};                    ///< what was not compared, and why
  std::vector<RoleReport> roles;            ///< what the kind writes, in its order

  bool isOk() const;
};

/// The gradient of an argument of the pattern, as a call gave it.
struct ArgumentResult {
  unsigned argument;
  const HostTensor *gradient;
};

/// What was called. All must outlive it.
struct KindCall {
  attn::PatternOp pattern;
  Problem problem;
  const AttentionInputs &inputs;
  double scale;
  std::vector<ArgumentResult> arguments = {}; ///< of a backward call
};

/// Compares so many sampled rows (sampleRows), and keys, of what a call of the inputs' kind wrote with its definition.
KindReport verifyCall(const KindCall &call, const RoleTensors &results, int64_t rows);

} // namespace heddle::oracle
