// descale(b, h) = max |x| / 448 over the finite x of the head, at least 2^-126, or 1 where that is 0; an element is the
// e4m3 number nearest to x / descale, NaN where x is infinite or NaN. Errors of tensors are counted in half steps of
// e4m3 at that place, of scales relative to them: what rounding in fp32 moves is allowed beside one half step. Where the
// inputs have a place for k_mean, rows of k are less the mean that the call wrote, which is any near the mean of what is
// finite; errors of it are relative to the head's largest magnitude.
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heddle::oracle {

namespace {

struct Quantized {
  Role from, to, descale;
};
constexpr Quantized kTensors[] = {{Role::q, Role::quantizedQ, Role::descaleQ},
                                  {Role::k, Role::quantizedK, Role::descaleK},
                                  {Role::v, Role::quantizedV, Role::descaleV}};

constexpr double kRounding = 0x1p-22; // of two operations in fp32, relative

double halfStep(double value) {
  constexpr int kSignificandBits = 4, kLeastExponent = -6;
  const int exponent = value == 0 ? kLeastExponent : std::max(std::ilogb(value), kLeastExponent);
  return std::ldexp(1.0, exponent - kSignificandBits);
}

class QuantizeReference final : public KindReference {
public:
  QuantizeReference(const KindCall &call, int64_t count) : inputs(call.inputs), count(count) {}

  KindReport compare(const Produced &produced) const override {
    KindReport report;
    std::vector<RoleReport> ofScales;
    RoleReport means;
    means.role = Role::kMean, means.allowedError = 0x1p-16;
    for (const Quantized &tensor : kTensors) {
      RoleReport values, scales;
      values.role = tensor.to, scales.role = tensor.descale;
      values.allowedError = 1 + 32 * kRounding, scales.allowedError = kRounding;
      report.rowsChecked = std::max(report.rowsChecked, compareTensor(tensor, produced, {values, scales, means}));
      report.roles.push_back(values);
      ofScales.push_back(scales);
    }
    report.roles.insert(report.roles.end(), ofScales.begin(), ofScales.end());
    if (inputs.isGiven(Role::kMean))
      report.roles.push_back(means);
    return report;
  }

private:
  static void add(RoleReport &report, double error, const RowId &id) {
    error = std::isnan(error) ? INFINITY : error;
    if (error > report.maxError)
      report.maxError = error, report.worst = id;
  }

  struct Reports {
    RoleReport &values, &scales, &means;
  };

  // A head of a tensor: what is subtracted from its rows, if anything, and its scale.
  struct Head {
    std::vector<double> mean;
    double descale;
  };

  // Rows compared.
  int64_t compareTensor(const Quantized &tensor, const Produced &produced, const Reports &reports) const {
    AttentionSizes sizes = inputs.sizes;
    sizes.seqlenQ = sizes.of(specOf(tensor.from).rows), sizes.heads = sizes.of(specOf(tensor.from).heads);
    const std::vector<RowId> rows = sampleRows(sizes, count);
    std::map<std::pair<int64_t, int64_t>, Head> heads;
    for (const RowId &id : rows) {
      const auto [known, isNew] = heads.try_emplace({id.batch, id.head});
      Head &head = known->second;
      if (isNew) {
        if (tensor.from == Role::k && inputs.isGiven(Role::kMean))
          head.mean = meanOf(produced, sizes.seqlenQ, id, reports.means);
        head.descale = descaleOf(tensor.from, head.mean, sizes.seqlenQ, id);
        add(reports.scales, std::abs(produced.rows(tensor.descale, id).front() - head.descale) / head.descale, id);
      }
      compareRow(valuesOf(tensor.from, head.mean, id), produced.rows(tensor.to, id), head.descale, id, reports.values);
    }
    return int64_t(rows.size());
  }

  /// What the call wrote, compared with what it should be.
  std::vector<double> meanOf(const Produced &produced, int64_t rows, RowId id, RoleReport &report) const {
    const std::vector<double> given = produced.rows(Role::kMean, id);
    std::vector<double> sums(given.size());
    double largest = 1e-2; // sums are whole multiples of some unit
    for (id.row = 0; id.row < rows; ++id.row) {
      const std::vector<double> values = valuesOf(Role::k, {}, id);
      for (size_t c = 0; c < values.size(); ++c)
        if (std::isfinite(values[c]))
          sums[c] += values[c], largest = std::max(largest, std::abs(values[c]));
    }
    for (size_t c = 0; c < given.size(); ++c)
      add(report, std::abs(given[c] - sums[c] / double(rows)) / largest, id);
    return given;
  }

  std::vector<double> valuesOf(Role from, const std::vector<double> &mean, const RowId &id) const {
    const HostTensor &tensor = inputs.of(from);
    const RowSpan span = spanOf(specOf(from), tensor.shape, id);
    std::vector<double> values;
    for (int64_t c = 0; c < span.count; ++c)
      values.push_back(mean.empty() ? tensor.get(span.first + c) : tensor.get(span.first + c) - float(mean[size_t(c)]));
    return values;
  }

  double descaleOf(Role from, const std::vector<double> &mean, int64_t rows, RowId id) const {
    double largest = 0;
    for (id.row = 0; id.row < rows; ++id.row)
      for (double value : valuesOf(from, mean, id))
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    return largest > 0 ? std::max(largest / 448, 0x1p-126) : 1;
  }

  static void compareRow(const std::vector<double> &values, const std::vector<double> &given, double descale,
                         const RowId &id, RoleReport &report) {
    for (size_t c = 0; c < given.size(); ++c) {
      const double wanted = values[c] / descale;
      if (std::isfinite(values[c]))
        add(report, std::abs(given[c] - wanted) / halfStep(wanted), id);
      else if (!std::isnan(given[c]))
        add(report, INFINITY, id);
    }
  }

  const AttentionInputs &inputs;
  int64_t count;
};

} // namespace

std::unique_ptr<const KindReference> quantizeOracle(const KindCall &call, int64_t count) {
  return std::make_unique<QuantizeReference>(call, count);
}

} // namespace heddle::oracle
