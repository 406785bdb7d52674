#include "compiler/Stream/CheckedRows.h"
#include "runtime/Core/ParallelFor.h"

#include <algorithm>
#include <mutex>
#include <tuple>

namespace heddle {
namespace {

constexpr int64_t kOtherKeys = 256; // of each row, beside those next to what the analysis keeps

std::tuple<int64_t, int64_t, int64_t> key(const oracle::RowId &id) { return {id.batch, id.head, id.row}; }

} // namespace

CheckedRows::CheckedRows(const PatternFile &file, const attn::ProblemSizes &sizes, const oracle::Problem &problem,
                         const RowSource &source, float scale, int64_t firstRow, int64_t count)
    : file(file), problem(problem), source(source), scale(scale),
      visitor(file.analysis(), attn::Direction::Forward, sizes) {
  AttentionSizes sampled = source.sizes;
  sampled.seqlenQ -= firstRow;
  for (oracle::RowId id : oracle::sampleRows(sampled, count)) {
    id.row += firstRow;
    rows.insert({id.row, Row{id, {}, 0}});
  }
}

Status CheckedRows::take(const StreamPiece &piece, StreamMachine &machine) {
  const AttentionSizes &sizes = source.sizes;
  const int64_t count = piece.rows.size(), element = dtypeBytes(source.dtype), bytes = sizes.valueDim * element;
  std::vector<char> values(static_cast<size_t>(bytes));
  for (auto at = rows.lower_bound(piece.rows.begin); at != rows.end() && at->first < piece.rows.end; ++at) {
    Row &row = at->second;
    const int64_t own = row.id.row - piece.rows.begin;
    HEDDLE_TRY(machine.take(piece.out + ((row.id.batch * count + own) * sizes.heads + row.id.head) * bytes,
                            uint64_t(bytes), values.data()));
    row.out.resize(size_t(sizes.valueDim));
    loadElements(source.dtype, values.data(), 0, sizes.valueDim, row.out.data());
    float lse = 0;
    HEDDLE_TRY(
        machine.take(piece.lse + ((row.id.batch * sizes.heads + row.id.head) * count + own) * int64_t(sizeof(float)),
                     sizeof lse, &lse));
    row.lse = lse;
  }
  return {};
}

/// Ascending; more than `most`: so many and one.
std::vector<int64_t> CheckedRows::candidatesOf(const oracle::RowId &id, int64_t most) const {
  std::vector<int64_t> keys;
  for (const attn::LatticeColumns &columns :
       visitor.visit(id.head, {id.row, id.row + 1}, {0, source.sizes.seqlenK}).columns)
    for (const attn::TileRun &run : columns.runs)
      for (int64_t n = run.begin; n < run.end; ++n) {
        if (int64_t(keys.size()) > most)
          return keys;
        keys.push_back(columns.residue + columns.rate * n);
      }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

/// Beside every end of what the analysis keeps, and anywhere.
Result<int64_t> CheckedRows::askOthers(const oracle::AttentionOracle &definition,
                                       const std::vector<oracle::RowId> &ids) const {
  const RandomStream chance(1, "keys that rows leave out");
  const int64_t keys = source.sizes.seqlenK, count = int64_t(ids.size());
  std::atomic<int64_t> asked{0};
  std::mutex mutex;
  std::string missed;
  parallelFor(count, definition.isThreadSafe() ? threadCountFor(count, 0) : 1, [&](int, int64_t i) {
    const std::vector<int64_t> kept = candidatesOf(ids[size_t(i)], kMostKeysOfRow);
    std::vector<int64_t> others;
    for (int64_t n = 0; n < kOtherKeys; ++n)
      others.push_back(int64_t(chance.word(uint64_t(i * kOtherKeys + n)) % uint64_t(keys)));
    if (!kept.empty())
      for (int64_t next = 1; next <= 8; ++next)
        others.insert(others.end(), {kept.front() - next, kept.back() + next});
    for (int64_t other : others) {
      if (other < 0 || other >= keys || std::binary_search(kept.begin(), kept.end(), other))
        continue;
      ++asked;
      if (!definition.keeps(ids[size_t(i)], other))
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      missed = "row " + std::to_string(ids[size_t(i)].row) + " of head " + std::to_string(ids[size_t(i)].head) +
               " keeps key " + std::to_string(other) + ", which the analysis leaves out";
    }
  });
  if (!missed.empty())
    return Status::internal(missed);
  return int64_t(asked);
}

Result<CheckedReport> CheckedRows::compare() const {
  CheckedReport report;
  std::vector<oracle::RowId> ids;
  std::map<std::tuple<int64_t, int64_t, int64_t>, const Row *> found;
  for (const auto &[number, row] : rows)
    if (int64_t(candidatesOf(row.id, kMostKeysOfRow).size()) > kMostKeysOfRow) {
      ++report.skippedRows;
    } else {
      ids.push_back(row.id);
      found[key(row.id)] = &row;
    }
  Status failure;
  std::mutex mutex;
  oracle::InputRows inputs{source.sizes, source.dtype, {}};
  inputs.read = [&](Role role, const oracle::RowId &id, float *values) {
    const RowBlock block{role, id.batch, 1, {id.row, 1, 1}, id.head, 1};
    std::vector<char> bytes(static_cast<size_t>(source.bytesOf(block)));
    const Status status = source.read(block, bytes.data());
    loadElements(source.dtype, bytes.data(), 0, source.dimOf(role), values);
    if (status.isOk())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    failure = status;
  };
  inputs.candidates = [&](const oracle::RowId &id) { return candidatesOf(id, kMostKeysOfRow); };
  const oracle::AttentionOracle definition(file.pattern(), problem, inputs, scale);
  HEDDLE_ASSIGN(report.otherKeys, askOthers(definition, ids));
  report.rows =
      oracle::forwardReference(definition, ids, source.dtype)->compare({[&](Role role, const oracle::RowId &id) {
        const Row &row = *found.at(key(id));
        return role == Role::out ? row.out : std::vector<double>{row.lse};
      }});
  HEDDLE_TRY(failure);
  return report;
}

} // namespace heddle
