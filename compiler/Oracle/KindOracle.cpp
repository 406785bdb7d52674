//===- KindOracle.cpp - calls of every kind from their definitions --------===//
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>

namespace heddle::oracle {

#define HEDDLE_KIND_ORACLE(identifier, ...)                                                                            \
  KindReport identifier##Oracle(const KindCall &call, const RoleTensors &results, int64_t rows);
HEDDLE_KINDS(HEDDLE_KIND_ORACLE)
#undef HEDDLE_KIND_ORACLE

bool KindReport::isOk() const {
  return std::all_of(roles.begin(), roles.end(), [](const RoleReport &role) { return role.isOk(); });
}

KindReport verifyCall(const KindCall &call, const RoleTensors &results, int64_t rows) {
  static constexpr decltype(&forwardOracle) oracles[] = {
#define HEDDLE_KIND_ORACLE(identifier, ...) identifier##Oracle,
      HEDDLE_KINDS(HEDDLE_KIND_ORACLE)
#undef HEDDLE_KIND_ORACLE
  };
  return oracles[call.inputs.kind - kinds().data()](call, results, rows);
}

KindReport forwardOracle(const KindCall &call, const RoleTensors &results, int64_t rows) {
  const AttentionOracle definition(call.pattern, call.problem, call.inputs, call.scale);
  const VerifyReport report = verifyRows(definition, results.out, results.lse, sampleRows(call.inputs.sizes, rows));
  return {report.rowsChecked,
          0,
          {},
          {{Role::out, {}, report.maxError, report.allowedError, report.worst},
           {Role::lse, {}, report.maxLseError, report.allowedLseError, report.worstLse}}};
}

} // namespace heddle::oracle
