// descale(b, h) = max |x| / 448 over the finite x of the head, or of a block of its rows of q and k, at least 2^-126, or 1
// where that is 0; an element is the e4m3 number nearest to x / descale, NaN where x is infinite or NaN. Errors of tensors
// are counted in half steps of e4m3 at that place, of scales relative to them: what rounding in fp32 moves is allowed beside one half step. Where the
// inputs have a rotation, x of q and k is H (rotation * x) / sqrt(n) of each n elements, by the matrix; what log2(n) sums in
// fp32 move such an element at most is no error. Where the inputs have a place for k_mean, rows of k are less the mean that
// the call wrote, which is any near the mean of what is finite; errors of it are relative to the head's largest magnitude.
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace heddle::oracle {

namespace {

struct Quantized {
  Role from, to, descale;
};
constexpr Quantized kTensors[] = {{Role::q, Role::quantizedQ, Role::descaleQ},
                                  {Role::k, Role::quantizedK, Role::descaleK},
                                  {Role::v, Role::quantizedV, Role::descaleV}};

constexpr double kRounding = 0x1p-22; // of two operations in fp32, relative
constexpr double kUnit = 0x1p-24;     // of one

double halfStep(double value) {
  constexpr int kSignificandBits = 4, kLeastExponent = -6;
  const int exponent = value == 0 ? kLeastExponent : std::max(std::ilogb(value), kLeastExponent);
  return std::ldexp(1.0, exponent - kSignificandBits);
}

/// A row as the definition has it, and how far from it each element of the call's own, in fp32, may be.
struct Row {
  std::vector<double> values, slack;
};

/// H of the definition, of as many dimensions as a head dim has powers of two, 256 at most.
class Rotation {
public:
  explicit Rotation(int64_t dim) : count(std::min<int64_t>(dim & -dim, 256)) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < count; ++j)
        matrix.push_back(__builtin_popcountll(uint64_t(i & j)) % 2 ? -1 : 1);
  }

  /// An element of the call is a sum of as many as there are, whose magnitudes are those of the row: log2(n) additions,
  /// the product with 1 / sqrt(n) and the rounding of that move it by a unit each of the sum of these. One more is for what
  /// is rounded of that, and for a subtraction.
  void apply(const HostTensor &signs, Row &row) const {
    const double root = std::sqrt(double(count)), roundings = std::log2(double(count)) + 3;
    const std::vector<double> given = row.values;
    for (int64_t first = 0; first < int64_t(given.size()); first += count) {
      double magnitudes = 0;
      std::fill_n(row.values.begin() + first, count, 0.0);
      for (int64_t j = 0; j < count; ++j) {
        const double value = signs.get(first + j) * given[size_t(first + j)];
        magnitudes += std::abs(value);
        for (int64_t i = 0; i < count; ++i)
          row.values[size_t(first + i)] += matrix[size_t(j * count + i)] * value;
      }
      for (int64_t i = first; i < first + count; ++i)
        row.values[size_t(i)] /= root, row.slack[size_t(i)] = roundings * kUnit * magnitudes / root + 0x1p-149;
    }
  }

private:
  int64_t count;
  std::vector<double> matrix;
};

class QuantizeReference final : public KindReference {
public:
  QuantizeReference(const KindCall &call, int64_t count)
      : inputs(call.inputs), count(count), rotation(call.inputs.sizes.headDim) {}

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

  // A head of a tensor, or a block of its rows: what is subtracted from its rows, if anything, its scale, and how far that may be off, relatively.
  struct Head {
    std::vector<double> mean;
    double descale, slack;
  };

  // Rows compared.
  int64_t compareTensor(const Quantized &tensor, const Produced &produced, const Reports &reports) const {
    AttentionSizes sizes = inputs.sizes;
    sizes.seqlenQ = sizes.of(specOf(tensor.from).rows), sizes.heads = sizes.of(specOf(tensor.from).heads);
    const std::vector<RowId> rows = sampleRows(sizes, count);
    std::map<std::pair<int64_t, int64_t>, std::vector<double>> means;
    std::map<std::tuple<int64_t, int64_t, int64_t>, Head> heads;
    const int64_t blockRows = tensor.from == Role::v ? 0 : inputs.scaleRows;
    for (const RowId &id : rows) {
      const int64_t block = blockRows ? id.row / blockRows : 0;
      const auto [known, isNew] = heads.try_emplace({id.batch, id.head, block});
      Head &head = known->second;
      if (isNew) {
        if (tensor.from == Role::k && inputs.isGiven(Role::kMean))
          head.mean = meansOf(produced, sizes.seqlenQ, id, reports.means, means[{id.batch, id.head}]);
        const int64_t first = block * blockRows,
                      end = blockRows ? std::min(first + blockRows, sizes.seqlenQ) : sizes.seqlenQ;
        findDescale(tensor.from, {first, end}, id, head);
        const RowId place = {id.batch, id.head, block};
        const double off = std::abs(produced.rows(tensor.descale, place).front() - head.descale) / head.descale;
        add(reports.scales, off - head.slack, id);
      }
      compareRow(rowOf(tensor.from, head.mean, id), produced.rows(tensor.to, id), head, id, reports.values);
    }
    return int64_t(rows.size());
  }

  /// Those of a head, once.
  const std::vector<double> &meansOf(const Produced &produced, int64_t rows, RowId id, RoleReport &report,
                                     std::vector<double> &known) const {
    if (known.empty())
      known = meanOf(produced, rows, id, report);
    return known;
  }

  /// What the call wrote, compared with what it should be.
  std::vector<double> meanOf(const Produced &produced, int64_t rows, RowId id, RoleReport &report) const {
    const std::vector<double> given = produced.rows(Role::kMean, id);
    std::vector<double> sums(given.size());
    double largest = 1e-2, slack = 0; // sums are whole multiples of some unit
    for (id.row = 0; id.row < rows; ++id.row) {
      const Row row = rowOf(Role::k, {}, id);
      for (size_t c = 0; c < given.size(); ++c)
        if (const double value = row.values[c]; std::isfinite(value))
          sums[c] += value, largest = std::max(largest, std::abs(value)), slack = std::max(slack, row.slack[c]);
    }
    for (size_t c = 0; c < given.size(); ++c)
      add(report, (std::abs(given[c] - sums[c] / double(rows)) - slack) / largest, id);
    return given;
  }

  Row rowOf(Role from, const std::vector<double> &mean, const RowId &id) const {
    const HostTensor &tensor = inputs.of(from);
    const RowSpan span = spanOf(specOf(from), tensor.shape, id);
    const bool isRotated = from != Role::v && inputs.isGiven(Role::rotation);
    Row row = {std::vector<double>(size_t(span.count)), std::vector<double>(size_t(span.count))};
    for (int64_t c = 0; c < span.count; ++c)
      row.values[size_t(c)] = tensor.get(span.first + c);
    if (isRotated)
      rotation.apply(inputs.rotation, row);
    for (size_t c = 0; c < mean.size(); ++c)
      row.values[c] = isRotated ? row.values[c] - mean[c] : float(row.values[c]) - float(mean[c]);
    for (size_t c = 0; isRotated && c < mean.size(); ++c)
      row.slack[c] += kUnit * std::abs(row.values[c]);
    return row;
  }

  struct RowRange {
    int64_t first, end;
  };

  void findDescale(Role from, const RowRange &rows, RowId id, Head &head) const {
    double largest = 0, slack = 0;
    for (id.row = rows.first; id.row < rows.end; ++id.row) {
      const Row row = rowOf(from, head.mean, id);
      for (size_t c = 0; c < row.values.size(); ++c)
        if (const double value = row.values[c]; std::isfinite(value))
          largest = std::max(largest, std::abs(value)), slack = std::max(slack, row.slack[c]);
    }
    head.descale = largest > 0 ? std::max(largest / 448, 0x1p-126) : 1;
    head.slack = slack / 448 / head.descale;
  }

  static void compareRow(const Row &row, const std::vector<double> &given, const Head &head, const RowId &id,
                         RoleReport &report) {
    for (size_t c = 0; c < given.size(); ++c) {
      const double wanted = row.values[c] / head.descale;
      const double slack = row.slack[c] / head.descale + head.slack * std::abs(wanted);
      if (std::isfinite(wanted))
        add(report, (std::abs(given[c] - wanted) - slack) / halfStep(std::abs(wanted) + slack), id);
      else if (!std::isnan(given[c]))
        add(report, INFINITY, id);
    }
  }

  const AttentionInputs &inputs;
  int64_t count;
  Rotation rotation;
};

} // namespace

std::unique_ptr<const KindReference> quantizeOracle(const KindCall &call, int64_t count) {
  return std::make_unique<QuantizeReference>(call, count);
}

std::unique_ptr<const KindReference> quantizeRotatedOracle(const KindCall &call, int64_t count) {
  return quantizeOracle(call, count);
}

} // namespace heddle::oracle
