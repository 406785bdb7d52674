//===- KindOracle.h - calls of every kind from their definitions -----------===//
// Owns the list of the definitions: `<kind>Oracle` for each line of HEDDLE_KINDS, in fp64, and what they say of a
// result.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_ORACLE_KINDORACLE_H
#define HEDDLE_COMPILER_ORACLE_KINDORACLE_H

#include "compiler/Oracle/AttentionOracle.h"

namespace heddle::oracle {

/// Of what a call writes under one role. A NaN is an infinite error.
struct RoleReport {
  Role role = Role::out;
  double maxError = 0, allowedError = 0;
  RowId worst; ///< where maxError was found

  bool isOk() const { return maxError <= allowedError; }
};

struct KindReport {
  int64_t rowsChecked = 0, keysChecked = 0; ///< keys: of gradients, whose `worst` is then one
  std::vector<RoleReport> roles;            ///< what the kind writes, in its order

  bool isOk() const;
};

/// What was called. All must outlive it.
struct KindCall {
  attn::PatternOp pattern;
  Problem problem;
  const AttentionInputs &inputs;
  double scale;
};

/// Compares so many sampled rows (sampleRows), and keys, of what a call of the inputs' kind wrote with its definition.
KindReport verifyCall(const KindCall &call, const RoleTensors &results, int64_t rows);

} // namespace heddle::oracle

#endif
