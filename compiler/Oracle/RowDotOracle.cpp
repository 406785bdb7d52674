//===- RowDotOracle.cpp - delta from its definition -----------------------===//
// delta(b, h, i) = sum over d of out(b, i, h, d) * d_out(b, i, h, d). Allowed is what the rule of docs/verification.md
// allows: twice the error of a plain sum in fp32, and twice what rounding changes.
//===----------------------------------------------------------------------===//
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <cmath>

namespace heddle::oracle {

KindReport rowDotOracle(const KindCall &call, const RoleTensors &results, int64_t count) {
  const std::vector<RowId> rows = sampleRows(call.inputs.sizes, count);
  const AttentionSizes &sizes = call.inputs.sizes;
  RoleReport report;
  report.role = Role::delta;
  double plainError = 0, unit = 0;
  for (const RowId &id : rows) {
    const int64_t first = ((id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head) * sizes.valueDim;
    double exact = 0;
    float plain = 0;
    for (int64_t column = first; column < first + sizes.valueDim; ++column) {
      exact += double(call.inputs.out.get(column)) * double(call.inputs.dOut.get(column));
      plain += call.inputs.out.get(column) * call.inputs.dOut.get(column);
    }
    const float value = results.delta.get((id.batch * sizes.heads + id.head) * sizes.seqlenQ + id.row);
    const double error = std::isnan(value) ? INFINITY : std::abs(double(value) - exact);
    if (error > report.maxError) {
      report.maxError = error;
      report.worst = id;
    }
    const float rounded = float(exact);
    plainError = std::max(plainError, std::abs(double(plain) - exact));
    unit = std::max(unit, std::abs(double(float(float(rounded + 0.3f) - 0.3f)) - double(rounded)));
  }
  report.allowedError = 2 * plainError + 2 * unit;
  return {int64_t(rows.size()), 0, {}, {report}};
}

} // namespace heddle::oracle
