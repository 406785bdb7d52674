// Each sequence, or each kv head of one that has tables for each, is a forward call of its own on the rows of q and the keys
// that its row of the table names, or its offsets.
#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <limits>
#include <map>

namespace heddle::oracle {
namespace {

/// Where a sequence lies in the tensors of its call.
struct Sequence {
  int64_t number, batch, firstRow, rows;
};

class Sequences {
public:
  explicit Sequences(const AttentionInputs &inputs) : inputs(inputs) {
    const bool isRagged = inputs.isGiven(Role::cuSeqlensQ);
    const HostTensor &offsets = inputs.cuSeqlensQ;
    for (int64_t s = 0; s < inputs.sizes.sequences; ++s) {
      const int64_t first = isRagged ? int64_t(offsets.get(s)) : 0;
      const int64_t rows = isRagged ? int64_t(offsets.get(s + 1)) - first : inputs.sizes.seqlenQ;
      list.push_back({s, isRagged ? 0 : s, first, rows});
    }
  }

  /// The sequence of a row by its place in the tensors.
  const Sequence &of(const RowId &id) const {
    return *std::find_if(list.begin(), list.end(), [&](const Sequence &sequence) {
      return sequence.batch == id.batch && id.row >= sequence.firstRow && id.row < sequence.firstRow + sequence.rows;
    });
  }

  /// The table that a query head goes by.
  int64_t tableOf(int64_t head) const {
    return inputs.sizes.tables > 1 ? head / (inputs.sizes.heads / inputs.sizes.kvHeads) : 0;
  }

  int64_t keysOf(const Sequence &sequence, int64_t table) const {
    if (inputs.isGiven(Role::sequsedK))
      return int64_t(inputs.sequsedK.get(table * inputs.sizes.sequences + sequence.number));
    if (inputs.isGiven(Role::cuSeqlensK))
      return countOf(inputs.cuSeqlensK, sequence);
    const int64_t pages = countOf(inputs.kvIndptr, sequence);
    return pages ? (pages - 1) * inputs.sizes.pageSize + int64_t(inputs.kvLastPageLen.get(sequence.number)) : 0;
  }

  /// What its keys here are of: where they begin, and where the whole ends, whose last positions its rows are.
  void giveParts(const Sequence &sequence, attn::PatternOp pattern, Problem &problem) const {
    problem.kOrigin = inputs.isGiven(Role::kOrigins) ? int64_t(inputs.kOrigins.get(sequence.number)) : 0;
    const int64_t whole =
        inputs.isGiven(Role::wholeK) ? int64_t(inputs.wholeK.get(sequence.number)) : problem.kOrigin + problem.seqlenK;
    problem.qOrigin = whole - sequence.rows;
    const std::optional<unsigned> queries = pattern.getWholeArgument(attn::WholeAxis::Queries),
                                  keys = pattern.getWholeArgument(attn::WholeAxis::Keys);
    if (inputs.kind.hasPartsOfSequences() && queries && keys)
      problem.parameters[*queries] = problem.parameters[*keys] = whole;
  }

  /// Rows and keys by their numbers in the sequence.
  InputRows rowsOf(const Sequence &sequence, int64_t table) const {
    AttentionSizes sizes = inputs.sizes;
    sizes.batch = 1, sizes.seqlenQ = sequence.rows, sizes.seqlenK = keysOf(sequence, table);
    const auto read = [this, sequence, table](Role role, const RowId &id, float *values) {
      const RowId place = role == Role::q ? RowId{sequence.batch, id.head, sequence.firstRow + id.row}
                                          : placeOfKey(sequence, table, id);
      const HostTensor &tensor = inputs.of(role);
      const RowSpan span = spanOf(specOf(role), tensor.shape, place);
      loadElements(tensor.dtype, tensor.data.data(), span.first, int(span.count), values);
      const float descale = inputs.descaleOf(role, sequence.number, id.head);
      for (int64_t c = 0; c < span.count; ++c)
        values[c] *= descale;
    };
    return {sizes, inputs.dtype(), read, {}, {}, inputs.precision};
  }

private:
  static int64_t countOf(const HostTensor &offsets, const Sequence &sequence) {
    return int64_t(offsets.get(sequence.number + 1)) - int64_t(offsets.get(sequence.number));
  }

  RowId placeOfKey(const Sequence &sequence, int64_t table, const RowId &id) const {
    const AttentionSizes &sizes = inputs.sizes;
    if (inputs.isGiven(Role::cuSeqlensK))
      return {0, id.head, int64_t(inputs.cuSeqlensK.get(sequence.number)) + id.row};
    const int64_t list = table * sizes.sequences + sequence.number, number = id.row / sizes.pageSize;
    const double page = inputs.isGiven(Role::kvIndptr)
                            ? inputs.kvIndices.get(int64_t(inputs.kvIndptr.get(sequence.number)) + number)
                            : inputs.pageTable.get(list * sizes.maxPages + number);
    return {int64_t(page), id.head, id.row % sizes.pageSize};
  }

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
    using ListId = std::pair<int64_t, int64_t>; // sequence and table
    std::map<ListId, std::vector<RowId>> rowsOf;
    std::map<ListId, Sequence> known;
    for (const RowId &id : sampleRows(call.inputs.sizes, rows)) {
      const Sequence &sequence = sequences.of(id);
      const ListId list(sequence.number, sequences.tableOf(id.head));
      known.emplace(list, sequence);
      rowsOf[list].push_back({sequence.number, id.head, id.row - sequence.firstRow});
    }
    for (const auto &[list, sequence] : known) {
      Problem problem = call.problem;
      problem.seqlenQ = sequence.rows, problem.seqlenK = sequences.keysOf(sequence, list.second);
      sequences.giveParts(sequence, call.pattern, problem);
      const AttentionOracle definition(call.pattern, problem, sequences.rowsOf(sequence, list.second), call.scale);
      parts.push_back(
          {sequence, forwardReference(definition, rowsOf[list], call.outDType.value_or(call.inputs.dtype()))});
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

std::unique_ptr<const KindReference> cascadeOracle(const KindCall &call, int64_t rows) {
  return decodeOracle(call, rows);
}

std::unique_ptr<const KindReference> decodeInvariantOracle(const KindCall &call, int64_t rows) {
  return decodeOracle(call, rows);
}

} // namespace heddle::oracle
