// delta(b, h, i) = sum over d of out(b, i, h, d) * d_out(b, i, h, d). Allowed is what the rule of docs/verification.md
// allows: twice the error of a plain sum in fp32, and twice what rounding changes.
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <cmath>

namespace heddle::oracle {

namespace {

class RowDotReference final : public KindReference {
public:
  RowDotReference(const KindCall &call, int64_t count) : rows(sampleRows(call.inputs.sizes, count)) {
    const AttentionInputs &inputs = call.inputs;
    for (const RowId &id : rows) {
      const RowSpan span = spanOf(specOf(Role::out), inputs.out.shape, id);
      double sum = 0;
      float plain = 0;
      for (int64_t column = span.first; column < span.first + span.count; ++column) {
        sum += double(inputs.out.get(column)) * double(inputs.dOut.get(column));
        plain += inputs.out.get(column) * inputs.dOut.get(column);
      }
      const float rounded = float(sum);
      exact.push_back(sum);
      plainError = std::max(plainError, std::abs(double(plain) - sum));
      unit = std::max(unit, std::abs(double(float(float(rounded + 0.3f) - 0.3f)) - double(rounded)));
    }
  }

  KindReport compare(const Produced &produced) const override {
    RoleReport report;
    report.role = Role::delta;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double value = produced.rows(Role::delta, rows[i]).front();
      const double error = std::isnan(value) ? INFINITY : std::abs(value - exact[i]);
      if (error > report.maxError) {
        report.maxError = error;
        report.worst = rows[i];
      }
    }
    report.allowedError = 2 * plainError + 2 * unit;
    return {int64_t(rows.size()), 0, {}, {report}};
  }

private:
  std::vector<RowId> rows;
  std::vector<double> exact; ///< in their order
  double plainError = 0, unit = 0;
};

} // namespace

std::unique_ptr<const KindReference> rowDotOracle(const KindCall &call, int64_t count) {
  return std::make_unique<RowDotReference>(call, count);
}

} // namespace heddle::oracle
