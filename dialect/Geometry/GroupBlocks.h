// Owns how the ranges of ranks are cut into blocks, whose rows meet their columns in the same launches, and what the rows
// of each keep.
#pragma once

#include "dialect/Geometry/GroupPlanner.h"

#include <optional>

namespace heddle::attn {

/// The same request over teams, of the heads of one member; of one team, whatever the form, a gather.
struct TeamRequest {
  /// What it refers to outlives this.
  explicit TeamRequest(const GroupPlanRequest &whole);
  TeamRequest(const TeamRequest &) = delete;

  const ProblemSizes sizes;
  const ShardLayout layout;
  GroupPlanRequest request;
};

struct WalkRules {
  bool hasEarlyLaunches =
      true; ///< rows may meet their own rank's columns before the others are there, in another launch
  bool fromFirstColumn = false; ///< every row meets its columns in one launch that begins with column 0
  bool haveGuests = false;      ///< few rows that ask for many columns of other ranks may travel to these
  bool haveKeys = false;        ///< columns meet more rows than the rank's own: keysOf()
};

struct GroupBlock {
  IndexRange rows;      ///< of one range of its rank
  bool isEarly;         ///< meets its own range's columns while the others are under way
  bool isGuest = false; ///< travels to the columns of other ranks
  bool isFew = false;   ///< few rows, which meet their own rank's columns in front of other rows
  std::vector<std::vector<LatticeColumns>> ofHeads = {}; ///< kept columns, by head of columns
  std::vector<RowRange> clusters = {};                   ///< columns that lie near each other: hulls, ascending
  IndexRange hull = {0, 0};                              ///< of all kept columns
};

inline RowRange rowRange(const IndexRange &range) { return {range.begin, range.end}; }
inline bool isInside(const RowRange &range, const RowRange &of) {
  return of.begin <= range.begin && range.end <= of.end;
}
/// Windows that hold these as well: ascending, none next to another.
void addWindows(std::vector<RowRange> &windows, const std::vector<RowRange> &clusters);

class GroupBlocks {
public:
  /// A block for each range. The request outlives this.
  GroupBlocks(const GroupPlanRequest &request, Direction direction, WalkRules rules)
      : GroupBlocks(request, direction, rules, request.layout.ranks) {}
  /// A block for each of these ranges of rows, by rank, wherever they lie; empty ones keep nothing.
  GroupBlocks(const GroupPlanRequest &request, Direction direction, WalkRules rules,
              const std::vector<std::vector<IndexRange>> &rowsOfRanks);

  /// Of ranks that would only wait for what travels to them ranges are cut, so that rows which need nothing of others, or
  /// else the last rows, can begin.
  void cutThoseThatWait();
  /// All columns of the block lie at a distance of 1, in every head.
  static bool areDense(const GroupBlock &block);

  const std::vector<GroupBlock> &of(size_t rank) const { return blocks[rank]; }
  bool hasEarly() const;
  bool hasGuests() const;
  int64_t columnHeads() const { return heads; }
  /// The first head of columns of which every block keeps what it keeps of this one.
  int64_t firstAlike(int64_t head) const { return columnsAlike[size_t(head)]; }
  /// The range of the rank's own that has all of these columns.
  std::optional<size_t> ownRangeOf(size_t rank, const std::vector<RowRange> &clusters) const;
  std::vector<RowRange> clustersOf(const std::vector<IndexRange> &hulls) const;
  /// Columns of other ranks, summed over heads, that some row of the blocks keeps.
  int64_t askedBy(size_t rank, const std::vector<const GroupBlock *> &visited) const;
  /// What `from` has of what those blocks of `to` keep, as far as windows of the step hold it.
  void addHop(GroupStep &step, size_t from, size_t to, const std::vector<size_t> &ofBlocks) const;

private:
  std::vector<RowRun> askedRows(size_t rank, const std::vector<size_t> &ofBlocks, int64_t head,
                                const std::vector<IndexRange> &places) const;
  void findAlike();
  void visit(GroupBlock &block) const;
  void cut(size_t rank);
  void cutRange(size_t rank, const IndexRange &range, bool hasGuests, std::vector<GroupBlock> &into) const;
  int64_t askedBy(size_t rank, const IndexRange &rows) const;
  IndexRange guestRows(size_t rank, const GroupBlock &block) const;
  bool areFree(size_t rank, const IndexRange &rows) const;
  IndexRange freeRows(size_t rank, const IndexRange &range) const;
  bool isOneLaunch() const { return request.isPlacementFree || rules.fromFirstColumn; }
  const std::vector<IndexRange> &rangesOf(size_t rank) const { return request.layout.ranks[rank]; }

  const GroupPlanRequest &request;
  const WalkRules rules;
  ShardVisitor visitor;
  int64_t heads;                               ///< of columns
  int64_t step;                                ///< of the first columns of launches, so that tiles lie alike
  std::vector<int64_t> rowsAlike;              ///< by head of rows: the first one that keeps the same
  std::vector<int64_t> columnsAlike;           ///< firstAlike()
  std::vector<std::vector<GroupBlock>> blocks; ///< by rank
};

} // namespace heddle::attn
