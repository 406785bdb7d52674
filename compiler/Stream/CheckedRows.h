// Owns the comparison of sampled rows of a sequence of any length with the definition in fp64: the analysis says which keys
// a row may keep, the definition decides each of them, and is asked of others, too, that the analysis leaves out.
#pragma once

#include "compiler/Oracle/KindOracle.h"
#include "compiler/Stream/StreamCall.h"
#include "dialect/Geometry/Shard.h"

#include <map>

namespace heddle {

struct CheckedReport {
  oracle::KindReport rows;
  int64_t skippedRows = 0; ///< that may keep more than kMostKeysOfRow keys
  int64_t otherKeys = 0;   ///< that the definition was asked of and does not keep
};

class CheckedRows final : public StreamSink {
public:
  static constexpr int64_t kMostKeysOfRow = int64_t(1) << 18;

  /// At most so many rows, the first and the last one of rows from `firstRow` on among them. All outlive it.
  CheckedRows(const PatternFile &file, const attn::ProblemSizes &sizes, const oracle::Problem &problem,
              const RowSource &source, float scale, int64_t firstRow, int64_t count);

  Status take(const StreamPiece &piece, StreamMachine &machine) override;
  /// For after the last piece. internal: the definition keeps a key that the analysis leaves out; names the pair. Failures
  /// of the source.
  Result<CheckedReport> compare() const;

private:
  struct Row {
    oracle::RowId id;
    std::vector<double> out;
    double lse = 0;
  };
  std::vector<int64_t> candidatesOf(const oracle::RowId &id, int64_t most) const;
  Result<int64_t> askOthers(const oracle::AttentionOracle &definition, const std::vector<oracle::RowId> &ids) const;

  const PatternFile &file;
  const oracle::Problem &problem;
  const RowSource &source;
  float scale;
  attn::ShardVisitor visitor;
  std::multimap<int64_t, Row> rows; ///< by row
};

} // namespace heddle
