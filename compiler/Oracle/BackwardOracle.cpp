//===- BackwardOracle.cpp - what a backward pass may be off ---------------===//
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
  for (const ArgumentResult &wanted : call.arguments)
    if (oracle.canAffordArguments())
      reference.arguments.push_back(oracle.ofArgument(wanted));
  return reference;
}

namespace {

/// Compares rows of one gradient, one after the other.
class Comparison {
public:
  explicit Comparison(Role role) { report.role = role; }

  void add(const RowId &id, const GradientRow &reference, const HostTensor &result) {
    const int64_t dim = int64_t(reference.exact.size());
    const int64_t first = ((id.batch * result.shape[1] + id.row) * result.shape[2] + id.head) * dim;
    const bool keepsNothing =
        std::all_of(reference.unit.begin(), reference.unit.end(), [](double unit) { return unit == 0; });
    for (int64_t c = 0; c < dim; ++c) {
      const double exact = reference.exact[c], error = std::abs(double(result.get(first + c)) - exact);
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

RoleReport compare(Role role, const std::vector<RowId> &ids, const std::vector<GradientRow> &rows,
                   const RoleTensors &results) {
  Comparison comparison(role);
  for (size_t i = 0; i < ids.size(); ++i)
    comparison.add(ids[i], rows[i], results.of(role));
  return comparison.finished();
}

} // namespace

/// Its elements one by one, as rows.
static RoleReport compareArgument(const KindCall &call, const ArgumentResult &wanted, const GradientRow &reference) {
  Comparison comparison(Role::dQ);
  HostTensor flat = *wanted.gradient;
  flat.shape = {1, flat.elements(), 1, 1};
  for (int64_t i = 0; i < flat.elements(); ++i)
    comparison.add({0, 0, i}, {{reference.exact[i]}, {reference.plain[i]}, {reference.unit[i]}}, flat);
  RoleReport report = comparison.finished();
  attn::PatternOp pattern = call.pattern;
  report.argument = pattern.getParameterName(wanted.argument).str();
  return report;
}

KindReport compareGradients(const ReferenceGradients &reference, const KindCall &call, const RoleTensors &results) {
  KindReport report;
  report.rowsChecked = int64_t(reference.queries.size());
  report.keysChecked = int64_t(reference.keys.size());
  report.roles = {compare(Role::dQ, reference.queries, reference.dQ, results),
                  compare(Role::dK, reference.keys, reference.dK, results),
                  compare(Role::dV, reference.keys, reference.dV, results)};
  for (size_t i = 0; i < reference.arguments.size(); ++i)
    report.roles.push_back(compareArgument(call, call.arguments[i], reference.arguments[i]));
  if (reference.arguments.size() < call.arguments.size())
    report.note = "gradients of arguments are not compared: too many pairs";
  return report;
}

KindReport backwardOracle(const KindCall &call, const RoleTensors &results, int64_t rows) {
  return compareGradients(referenceGradients(call, rows), call, results);
}

} // namespace heddle::oracle
