#include "compiler/Oracle/GradientOracle.h"
#include "runtime/Core/ParallelFor.h"

#include <algorithm>
#include <cmath>

namespace heddle::oracle {

/// Rows of k as sampleRows takes those of q.
static AttentionSizes keysAsQueries(AttentionSizes sizes) {
  std::swap(sizes.seqlenQ, sizes.seqlenK);
  std::swap(sizes.heads, sizes.kvHeads);
  return sizes;
}

ReferenceGradients referenceGradients(const KindCall &call, int64_t count, int threads) {
  const GradientOracle oracle(call);
  ReferenceGradients reference;
  reference.queries = sampleRows(oracle.sizes(), count);
  reference.keys = sampleRows(keysAsQueries(oracle.sizes()), oracle.affordableKeys(count));
  const int64_t queries = int64_t(reference.queries.size()), keys = int64_t(reference.keys.size());
  reference.dQ.resize(queries);
  reference.dK.resize(keys);
  reference.dV.resize(keys);
  const int workers = oracle.isThreadSafe() ? threadCountFor(queries + keys, threads) : 1;
  parallelFor(queries + keys, workers, [&](int, int64_t item) {
    if (item >= keys) {
      reference.dQ[item - keys] = oracle.ofQuery(reference.queries[item - keys]);
      return;
    }
    KeyGradients gradients = oracle.ofKey(reference.keys[item]);
    reference.dK[item] = std::move(gradients.dK);
    reference.dV[item] = std::move(gradients.dV);
  });
  for (int64_t wanted : call.inputs.kind.gradientsOf)
    if (comparesArguments(oracle.sizes()))
      reference.arguments.push_back(oracle.ofArgument(unsigned(wanted)));
  return reference;
}

namespace {

/// What the rows are added to.
void addBefore(const HostTensor &before, Role role, const std::vector<RowId> &ids, std::vector<GradientRow> &rows) {
  constexpr double kHalfSpacing = 0x1p-24; // of fp32
  for (size_t i = 0; i < ids.size(); ++i) {
    const RowSpan span = spanOf(specOf(role), before.shape, ids[i]);
    for (int64_t c = 0; c < span.count; ++c) {
      const double value = before.get(span.first + c);
      rows[i].exact[c] += value;
      rows[i].plain[c] += value;
      rows[i].unit[c] += rows[i].unit[c] > 0 ? kHalfSpacing * std::abs(rows[i].exact[c]) : 0;
    }
  }
}

/// Compares rows of one gradient, one after the other.
class Comparison {
public:
  explicit Comparison(Role role) { report.role = role; }

  void add(const RowId &id, const GradientRow &reference, const std::vector<double> &result) {
    const bool keepsNothing =
        std::all_of(reference.unit.begin(), reference.unit.end(), [](double unit) { return unit == 0; });
    for (size_t c = 0; c < reference.exact.size(); ++c) {
      const double exact = reference.exact[c], error = std::abs(result[c] - exact);
      const bool isWrong = std::isnan(error) || (keepsNothing && error > 0); // no rounding explains anything but 0
      if (isWrong || error > report.maxError) {
        report.maxError = isWrong ? INFINITY : error;
        report.worst = id;
      }
      plainError = std::max(plainError, std::abs(reference.plain[c] - exact));
      unit = std::max(unit, reference.unit[c]);
    }
  }
  RoleReport finished() {
    report.allowedError = 2 * plainError + 2 * unit;
    return report;
  }

private:
  RoleReport report;
  double plainError = 0, unit = 0;
};

class BackwardReference final : public KindReference {
public:
  BackwardReference(const KindCall &call, int64_t rows) : gradients(referenceGradients(call, rows)) {
    attn::PatternOp pattern = call.pattern;
    for (int64_t wanted : call.inputs.kind.gradientsOf)
      arguments.push_back(pattern.getParameterName(unsigned(wanted)).str());
    const Kind &kind = call.inputs.kind;
    if (kind.addsTo(Role::dQ))
      addBefore(call.inputs.dQ, Role::dQ, gradients.queries, gradients.dQ);
    if (kind.addsTo(Role::dK))
      addBefore(call.inputs.dK, Role::dK, gradients.keys, gradients.dK);
    if (kind.addsTo(Role::dV))
      addBefore(call.inputs.dV, Role::dV, gradients.keys, gradients.dV);
  }

  /// Rows of gradients whose references are all 0, of what keeps nothing, must be 0.
  KindReport compare(const Produced &produced) const override {
    KindReport report;
    report.rowsChecked = int64_t(gradients.queries.size());
    report.keysChecked = int64_t(gradients.keys.size());
    report.roles = {compareRole(Role::dQ, gradients.queries, gradients.dQ, produced.rows),
                    compareRole(Role::dK, gradients.keys, gradients.dK, produced.rows),
                    compareRole(Role::dV, gradients.keys, gradients.dV, produced.rows)};
    for (size_t i = 0; i < gradients.arguments.size(); ++i)
      report.roles.push_back(compareArgument(arguments[i], gradients.arguments[i], produced.argument(i)));
    if (gradients.arguments.size() < arguments.size())
      report.note = "gradients of arguments are not compared: too many pairs";
    return report;
  }

private:
  static RoleReport compareRole(Role role, const std::vector<RowId> &ids, const std::vector<GradientRow> &rows,
                                const RowsOfRoles &produced) {
    Comparison comparison(role);
    for (size_t i = 0; i < ids.size(); ++i)
      comparison.add(ids[i], rows[i], produced(role, ids[i]));
    return comparison.finished();
  }

  /// Its elements one by one, as rows.
  static RoleReport compareArgument(const std::string &argument, const GradientRow &reference,
                                    const HostTensor &gradient) {
    Comparison comparison(Role::dQ);
    for (int64_t i = 0, end = gradient.elements(); i < end; ++i)
      comparison.add({0, 0, i}, {{reference.exact[i]}, {reference.plain[i]}, {reference.unit[i]}}, {gradient.get(i)});
    RoleReport report = comparison.finished();
    report.argument = argument;
    return report;
  }

  ReferenceGradients gradients;
  std::vector<std::string> arguments; ///< of the pattern whose gradients are compared too
};

} // namespace

std::unique_ptr<const KindReference> backwardOracle(const KindCall &call, int64_t rows) {
  return std::make_unique<BackwardReference>(call, rows);
}

} // namespace heddle::oracle
