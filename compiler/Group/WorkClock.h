// Owns how long the parts of one rank's work on a walk last, wherever they stand in the order: launches, carries, copies.
#pragma once

#include "compiler/Group/RingCall.h"
#include "dialect/Geometry/PairCounter.h"
#include "runtime/Core/GroupPlan.h"

#include <optional>

namespace heddle {

class WorkClock {
public:
  /// `call`: of the heads that the walk has.
  WorkClock(const GroupPlan &plan, const GroupWalk &walk, const RingCall &call, attn::PairCounter counter)
      : walk(walk), call(call), counter(std::move(counter)) {
    for (int32_t team = 0; team < plan.teams(); ++team)
      layout.push_back(plan.rowsOfTeam(team));
    for (const std::vector<RowRange> &blocks : walk.blocks)
      launches.emplace_back(blocks.size());
    for (const GroupStep &step : walk.steps)
      for (size_t rank = 0; rank < step.ranks.size(); ++rank)
        for (const ShardLaunch &launch : step.ranks[rank].launches)
          ++launches[rank][size_t(launch.rows)];
  }

  bool areKnown() const { return isKnown; }

  struct LaunchTime {
    double ms = 0;
    double tileMs = 0; ///< of the longest tile; as the launch, where no rate of tiles is given
    double workMs = 0; ///< of all processors, if others have work as well
  };

  LaunchTime timeOf(size_t rank, const ShardLaunch &launch) { return timeOf(blockOf(rank, launch), launch.columns); }

  LaunchTime timeOf(const RowRange &rows, const RowRange &columns) {
    if (rows.size() == 0)
      return {};
    const double flops = double(call.kind.flopsOfPair(call.headDim, call.valueDim)) * 1e-9;
    const double all = pairs(rows, columns) * double(call.batch) * flops / call.rates.tflops;
    if (!(call.rates.tileTflops > 0))
      return {all, all, all};
    double ofRow = 0;
    for (int64_t row : {rows.begin, rows.begin + rows.size() / 2, rows.end - 1})
      ofRow = std::max(ofRow, pairs({row, row + 1}, columns));
    const double ofTile = ofRow / double(call.heads) * double(kRowsOfTile) * flops / call.rates.tileTflops;
    return {std::max(all, ofTile), ofTile, all};
  }

  /// Of few rows beside other launches: 64 over 8k and 32k keys have 64 processors of an H200 for 100 and 400 us.
  LaunchTime timeAside(const RowRange &rows, const RowRange &columns) {
    constexpr double kShareOfRate = 0.85;
    LaunchTime time = timeOf(rows, columns);
    time.workMs /= kShareOfRate;
    return time;
  }

  /// Forward, a launch that does not end its block leaves out and lse in fp32.
  double carryMs(size_t rank, const ShardLaunch &launch, int64_t number) const {
    if (call.kind.isBackward() || number + 1 == launches[rank][size_t(launch.rows)])
      return 0;
    return memoryMs(partBytes(blockOf(rank, launch)));
  }

  /// Of the results of rows in fp32, and of q of rows that travel.
  double partBytes(const RowRange &rows) const {
    return double(rows.size() * call.batch * call.heads * (call.valueDim + 1) * int64_t(sizeof(float)));
  }
  double queryBytes(const RowRange &rows) const {
    return double(rows.size() * call.batch * call.heads * call.headDim * dtypeBytes(call.dtype));
  }
  /// A part is read, as what it is merged into, which is written.
  double mergeMs(const RowRange &rows) const { return memoryMs(3 * partBytes(rows)); }
  double blankMs(const ShardStep &share) const {
    int64_t columns = 0;
    for (const RowRange &blank : share.blanks)
      columns += blank.size();
    return memoryMs(double(columns * call.kvHeads * call.bytesOfKey()));
  }

  /// Own rows of windows are read and written.
  double copyMs(size_t rank, const ShardStep &share) const {
    int64_t rows = 0;
    for (const RowRange &window : share.windows)
      for (const RowRange &own : layout[rank])
        rows += std::max<int64_t>(0, std::min(window.end, own.end) - std::max(window.begin, own.begin));
    return memoryMs(2.0 * double(rows * call.kvHeads * call.bytesOfKey()));
  }

  /// Rows that are no run of bytes are packed, and unpacked: by one launch for all hops of a rank.
  bool isPacked(const Hop &hop) const {
    return call.batch != 1 || hop.parts.size() != 1 || hop.parts[0].heads != call.kvHeads ||
           hop.parts[0].rows.size() != 1 || hop.parts[0].rows[0].rate != 1;
  }
  double packMs(const Hop &hop) const {
    return isPacked(hop) ? memoryMs(2.0 * double(hop.headRows() * call.bytesOfKey())) : 0;
  }
  /// Sums are packed, or read, added and written.
  double sumMs(const Hop &hop, int64_t times) const {
    return memoryMs(double(times * hop.headRows() * call.gradientBytesOfKey()));
  }

  double furtherLaunchMs() const { return call.rates.launchUs * 1e-3; }
  /// What a queue waits that follows another one, and what a launch without last tiles costs, such as one that packs: 7 to 12 us on
  /// H200s, of 40.
  double followMs() const { return furtherLaunchMs() / 4; }

  const RowRange &blockOf(size_t rank, const ShardLaunch &launch) const {
    return walk.blocks[rank][size_t(launch.rows)];
  }

private:
  static constexpr int64_t kRowsOfTile = 128;

  double memoryMs(double bytes) const { return call.rates.memoryMs(bytes); }
  double pairs(const RowRange &rows, const RowRange &columns) {
    if (columns.size() == 0)
      return 0;
    const std::optional<attn::WideInt> kept = counter.count({rows.begin, rows.end}, {columns.begin, columns.end});
    isKnown &= kept.has_value();
    return static_cast<double>(kept.value_or(0));
  }

  std::vector<std::vector<RowRange>> layout;  ///< of the walk's ranks
  std::vector<std::vector<int64_t>> launches; ///< by rank and block
  const GroupWalk &walk;
  const RingCall &call;
  attn::PairCounter counter;
  bool isKnown = true;
};

} // namespace heddle
