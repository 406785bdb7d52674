#include "compiler/Oracle/KindOracle.h"
#include "runtime/Core/CallChecks.h"

#include <algorithm>
#include <limits>

namespace heddle::oracle {

#define HEDDLE_KIND_ORACLE(identifier, ...)                                                                            \
  std::unique_ptr<const KindReference> identifier##Oracle(const KindCall &call, int64_t rows);
HEDDLE_KINDS(HEDDLE_KIND_ORACLE)
#undef HEDDLE_KIND_ORACLE

bool KindReport::isOk() const {
  return std::all_of(roles.begin(), roles.end(), [](const RoleReport &role) { return role.isOk(); });
}

const RoleReport &KindReport::worst() const {
  const auto rank = [](const RoleReport &role) {
    const bool isTensor = !role.argument.empty() || specOf(role.role).form == RoleForm::tensor;
    const double share = role.maxError / std::max(role.allowedError, std::numeric_limits<double>::min());
    return std::pair(isTensor, share);
  };
  return *std::max_element(roles.begin(), roles.end(),
                           [&](const RoleReport &a, const RoleReport &b) { return rank(a) < rank(b); });
}

RowSpan spanOf(const RoleSpec &role, const std::vector<int64_t> &shape, const RowId &id) {
  const bool isTurned = isKeyMajor(role);
  const RoleExtent rows = isTurned ? role.dim : role.rows;
  int64_t first = 0;
  size_t dimension = 0;
  for (RoleExtent extent : extentsOf(role)) {
    if (dimension == shape.size()) // that of one block, which is left out
      break;
    const int64_t index = extent == role.lead ? id.batch : extent == rows ? id.row : extent == role.heads ? id.head : 0;
    first = first * shape[dimension++] + index;
  }
  if (isTurned)
    return {first, shape[1], shape[2] * shape[3]};
  return {first, role.dim == RoleExtent::one ? 1 : shape.back()};
}

RowsOfRoles rowsOf(const RoleTensors &results, const Kind &kind) {
  return [&results, kind](Role role, const RowId &id) {
    const HostTensor &tensor = results.of(role);
    const RowSpan span = spanOf(specOf(*kind.find(role)), tensor.shape, id);
    std::vector<double> row;
    for (int64_t i = 0; i < span.count; ++i)
      row.push_back(tensor.get(span.first + i * span.step));
    return row;
  };
}

std::unique_ptr<const KindReference> referenceOf(const KindCall &call, int64_t rows) {
  static constexpr decltype(&forwardOracle) oracles[] = {
#define HEDDLE_KIND_ORACLE(identifier, ...) identifier##Oracle,
      HEDDLE_KINDS(HEDDLE_KIND_ORACLE)
#undef HEDDLE_KIND_ORACLE
  };
  return oracles[int(call.inputs.kind.base)](call, rows);
}

KindReport verifyCall(const KindCall &call, const RoleTensors &results, int64_t rows,
                      const std::vector<HostTensor> &arguments) {
  return referenceOf(call, rows)->compare({rowsOf(results, call.inputs.kind), [&](size_t place) {
                                             return arguments[place];
                                           }});
}

namespace {

class ForwardReference final : public KindReference {
public:
  explicit ForwardReference(ReferenceRows rows) : rows(std::move(rows)) {}

  KindReport compare(const Produced &produced) const override {
    const VerifyReport report = compareRows(rows, [&](const RowId &id) {
      return RowResult{produced.rows(Role::out, id), produced.rows(Role::lse, id).front()};
    });
    return {report.rowsChecked,
            0,
            {},
            {{Role::out, {}, report.maxError, report.allowedError, report.worst},
             {Role::lse, {}, report.maxLseError, report.allowedLseError, report.worstLse}}};
  }

private:
  ReferenceRows rows;
};

} // namespace

std::unique_ptr<const KindReference> forwardReference(const AttentionOracle &definition, const std::vector<RowId> &rows,
                                                      DType outDType) {
  return std::make_unique<ForwardReference>(referenceRows(definition, rows, outDType));
}

std::unique_ptr<const KindReference> forwardOracle(const KindCall &call, int64_t rows) {
  InputRows inputs = inputRowsOf(call.inputs);
  inputs.isOfTensorCores = call.isOfTensorCores;
  const AttentionOracle definition(call.pattern, call.problem, inputs, call.scale);
  return forwardReference(definition, sampleRows(call.inputs.sizes, rows),
                          call.outDType.value_or(call.inputs.outDType()));
}

} // namespace heddle::oracle
