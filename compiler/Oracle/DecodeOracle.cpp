//===- DecodeOracle.cpp - sequences whose keys lie in pages ---------------===//
// Each sequence is a forward call of its own on the rows of q and the keys that its row of the table names.
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <limits>
#include <map>

namespace heddle::oracle {
namespace {

/// Where a sequence lies in the tensors of its call.
struct Sequence {
  int64_t number, batch, firstRow, rows, keys;
};

class Sequences {
public:
  explicit Sequences(const AttentionInputs &inputs) : inputs(inputs) {
    const bool isRagged = inputs.isGiven(Role::cuSeqlensQ);
    const HostTensor &offsets = inputs.cuSeqlensQ, &lengths = inputs.sequsedK;
    for (int64_t s = 0; s < lengths.elements(); ++s) {
      const int64_t first = isRagged ? int64_t(offsets.get(s)) : 0;
      const int64_t rows = isRagged ? int64_t(offsets.get(s + 1)) - first : inputs.sizes.seqlenQ;
      list.push_back({s, isRagged ? 0 : s, first, rows, int64_t(lengths.get(s))});
    }
  }

  /// The sequence of a row by its place in the tensors.
  const Sequence &of(const RowId &id) const {
    return *std::find_if(list.begin(), list.end(), [&](const Sequence &sequence) {
      return sequence.batch == id.batch && id.row >= sequence.firstRow && id.row < sequence.firstRow + sequence.rows;
    });
  }

  /// Rows and keys by their numbers in the sequence.
  InputRows rowsOf(const Sequence &sequence) const {
    AttentionSizes sizes = inputs.sizes;
    sizes.batch = 1, sizes.seqlenQ = sequence.rows, sizes.seqlenK = sequence.keys;
    const auto read = [this, sequence](Role role, const RowId &id, float *values) {
      RowId place = {sequence.batch, id.head, sequence.firstRow + id.row};
      if (role != Role::q) {
        const int64_t number = id.row / inputs.sizes.pageSize, entry = sequence.number * inputs.sizes.maxPages + number;
        place = {int64_t(inputs.pageTable.get(entry)), id.head, id.row % inputs.sizes.pageSize};
      }
      const HostTensor &tensor = inputs.of(role);
      const RowSpan span = spanOf(specOf(role), tensor.shape, place);
      loadElements(tensor.dtype, tensor.data.data(), span.first, int(span.count), values);
    };
    return {sizes, inputs.dtype(), read, {}, inputs.precision};
  }

private:
  const AttentionInputs &inputs;
  std::vector<Sequence> list;
};

/// Keeps of reports on the same roles, for each role, the one that is nearest to its bound or farthest beyond.
void join(KindReport &all, const KindReport &one) {
  const auto share = [](const RoleReport &role) {
    return role.maxError / std::max(role.allowedError, std::numeric_limits<double>::min());
  };
  all.rowsChecked += one.rowsChecked;
  if (all.roles.empty())
    all.roles = one.roles;
  for (size_t i = 0; i < one.roles.size(); ++i)
    if (share(one.roles[i]) > share(all.roles[i]))
      all.roles[i] = one.roles[i];
}

class DecodeReference final : public KindReference {
public:
  DecodeReference(const KindCall &call, int64_t rows) {
    const Sequences sequences(call.inputs);
    std::map<int64_t, std::vector<RowId>> rowsOf;
    std::map<int64_t, Sequence> known;
    for (const RowId &id : sampleRows(call.inputs.sizes, rows)) {
      const Sequence &sequence = sequences.of(id);
      known.emplace(sequence.number, sequence);
      rowsOf[sequence.number].push_back({sequence.number, id.head, id.row - sequence.firstRow});
    }
    for (const auto &[number, sequence] : known) {
      Problem problem = call.problem;
      problem.seqlenQ = sequence.rows, problem.seqlenK = sequence.keys;
      problem.qOrigin = sequence.keys - sequence.rows, problem.kOrigin = 0;
      const AttentionOracle definition(call.pattern, problem, sequences.rowsOf(sequence), call.scale);
      parts.push_back(
          {sequence, forwardReference(definition, rowsOf[number], call.outDType.value_or(call.inputs.dtype()))});
    }
  }

  KindReport compare(const Produced &produced) const override {
    KindReport all;
    for (const auto &[sequence, reference] : parts) {
      const Sequence &own = sequence;
      join(all, reference->compare({[&](Role role, const RowId &id) {
        return produced.rows(role, {own.batch, id.head, own.firstRow + id.row});
      }}));
    }
    return all;
  }

private:
  std::vector<std::pair<Sequence, std::unique_ptr<const KindReference>>> parts;
};

} // namespace

std::unique_ptr<const KindReference> decodeOracle(const KindCall &call, int64_t rows) {
  return std::make_unique<DecodeReference>(call, rows);
}

} // namespace heddle::oracle
