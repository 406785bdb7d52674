// Owns the list of the definitions: `<kind>Oracle` for each line of HEDDLE_KINDS, in fp64, and what they say of a
// result.
#pragma once

#include "compiler/Oracle/AttentionOracle.h"

#include <functional>
#include <memory>

namespace heddle::oracle {

/// How wrong is what a call writes under one role. A NaN is an infinite error.
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
  /// The tensor, or the array where there is no tensor, that is nearest to its bound or farthest beyond it.
  const RoleReport &worst() const;
};

/// Elements of a row in the tensor of its role: `count` of them, `step` apart.
struct RowSpan {
  int64_t first, count, step = 1;
};
/// `shape`: AttentionSizes::shapeOf.
RowSpan spanOf(const RoleSpec &role, const std::vector<int64_t> &shape, const RowId &id);

/// The values of a row of what a call wrote; one of an array without a dim.
using RowsOfRoles = std::function<std::vector<double>(Role role, const RowId &id)>;
/// `results`, of a call of that kind, must outlive it.
RowsOfRoles rowsOf(const RoleTensors &results, const Kind &kind);

/// What was called. All must outlive it.
struct KindCall {
  attn::PatternOp pattern;
  Problem problem;
  const AttentionInputs &inputs;
  double scale;
  std::optional<DType> outDType = {}; ///< of out; nothing: that of the inputs
  bool isOfTensorCores = false;       ///< what is compared (InputRows)
};

/// What a call gave: rows of its roles, and the gradient of an argument by its place among the call's.
struct Produced {
  RowsOfRoles rows;
  std::function<HostTensor(size_t place)> argument = {}; ///< asked for what is compared only
};

/// What a call of a kind should give at sampled rows, and keys: computed once and compared with many results.
class KindReference {
public:
  virtual ~KindReference() = default;
  /// A NaN counts as an infinite error.
  virtual KindReport compare(const Produced &produced) const = 0;
};

/// Pairs of queries and keys are few enough that gradients of arguments, which all of them add to, are compared.
bool comparesArguments(const AttentionSizes &sizes);

/// At most so many rows (sampleRows) of what a call of the inputs' kind writes.
std::unique_ptr<const KindReference> referenceOf(const KindCall &call, int64_t rows);

/// These rows of a forward call, whose out is of `outDType`.
std::unique_ptr<const KindReference> forwardReference(const AttentionOracle &definition, const std::vector<RowId> &rows,
                                                      DType outDType);

/// Compares them with what a call wrote; `arguments`: gradients of those, in the order of the call's.
KindReport verifyCall(const KindCall &call, const RoleTensors &results, int64_t rows,
                      const std::vector<HostTensor> &arguments = {});

} // namespace heddle::oracle
