// Owns the plan that ranks follow: whose rows lie where, which keys travel from whom to whom in which step, and which
// rows meet which keys. Whoever has a pattern makes it (compiler/Group); ranks need no pattern to follow it. Numbers of
// rows are positions of the whole sequence, of which queries and keys lie alike.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct RowRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

// Rows first + rate * n, n < count.
struct RowRun {
  int64_t first = 0, rate = 1, count = 0;

  int64_t last() const { return first + rate * (count - 1); }
};

// Rows of some consecutive heads.
struct HeadRows {
  int64_t firstHead = 0, heads = 0;
  std::vector<RowRun> rows; // ascending by their first; no row is in two of them

  int64_t rowCount() const;
};

// What one rank sends another in a step: in the order of `parts`, and in it of batches, runs, rows and heads.
struct Hop {
  int32_t from = 0, to = 0;
  std::vector<HeadRows> parts;

  int64_t headRows() const; // rows, each as often as heads of it travel
};

// A launch: one of the rank's blocks of rows meets consecutive columns. Launches of the same rows follow each other by
// the carry. Columns lie in an own range (window none), or in a window of the step.
struct ShardLaunch {
  int32_t rows = 0;
  int32_t window = -1; // of the step; none: in own range number `own`
  int32_t own = 0;
  RowRange columns;
  bool isAside = false; // beside other launches: few rows, of own columns
};

// What one rank computes in a step, once everything that travels to it in the step is there. A window is memory for
// consecutive columns: those that came, and the rank's own among them; others are not looked at, or blank, which is zero.
struct ShardStep {
  std::vector<RowRange> windows, blanks;
  std::vector<ShardLaunch> launches;
};

struct GroupStep {
  std::vector<Hop> hops;        // at most one for each ordered pair of ranks
  std::vector<ShardStep> ranks; // by rank
};

// Rows of a rank that travel to the columns that they keep on other ranks, where these weigh more. q goes with what travels
// in the last step but one. Every rank that the rows meet sends what it computed of them, in fp32, behind its launches on most
// rows (PartsLaunch.h); home merges that in the order of ranks, and continues it by the block's only launch of the last step.
struct GuestRows {
  struct Meeting {
    int32_t rank = 0, own = 0; // columns of this range of the rank
    RowRange columns;
  };
  int32_t home = 0, rows = 0;    // a block of home
  std::vector<Meeting> meetings; // ascending by rank
};

// Rows are queries and columns keys: what travels is k and v. Transposed, rows are keys and columns queries: what
// travels is q, d_out, and with them out and lse.
struct GroupWalk {
  std::vector<std::vector<RowRange>> blocks; // by rank: each within a range of its own, no row in two, all together all
  std::vector<GroupStep> steps;
  std::vector<GuestRows> guests = {};

  int64_t headRows() const; // of columns that travel in all
};

struct HeadRange {
  int64_t first = 0, count = 0;
};

// What a rank has on the walks of a plan: its team, and of the rows of this so many heads.
struct WalkShare {
  int32_t team = 0;
  std::vector<RowRange> rows;
  int64_t heads = 0, kvHeads = 0;
};

int64_t rowCount(const std::vector<RowRange> &ranges);
// The same rows in ranges that ascend and are not adjacent.
std::vector<RowRange> joined(std::vector<RowRange> ranges);
// Number of a row among those of ranges, which lie one behind the other; -1: it is in none.
int64_t placeOfRow(const std::vector<RowRange> &ranges, int64_t row);

// So many ranks can exchange heads: they divide them, and divide those of k and v or are a multiple of these.
bool canExchange(int64_t heads, int64_t kvHeads, int64_t ranks);

// A size of the pattern: whoever calls with another one would keep keys that do not travel.
struct PlannedSize {
  int64_t argument = 0, value = 0;
  std::string name;
};

// A tensor of the pattern with an entry for each query: a rank has those of its own rows, as it has rows of q, and launches
// take theirs from where the first of them lies.
struct RowTensor {
  int64_t argument = 0;
  int64_t rowBytes = 0;                        // of a row of one head, which has all keys of the whole
  bool isOfBatches = false, isOfHeads = false; // each of them has rows of its own
  bool isOfKeys = false;                       // a row has an entry for each, else one
  std::string name;
};

struct GroupPlan {
  std::string digest; // of the pattern of parts that launches are of
  int64_t rows = 0;   // of the whole
  int64_t heads = 0, kvHeads = 0;
  int64_t batches = 0; // that calls have; 0: any number, as what is kept does not depend on the batch
  // Arguments of the pattern of parts that say where queries and keys of the whole end, and, where tensors have an entry for
  // each key, how many a row of those of a launch has.
  std::vector<int64_t> wholes;
  std::vector<PlannedSize> sizes; // that it was made of
  std::vector<RowTensor> rowTensors;
  std::vector<std::vector<RowRange>> layout; // by rank: its ranges, ascending and not adjacent
  // So many consecutive ranks are a team: they exchange q, k and v, so that each of its members has all rows of the team, of
  // some heads, and results come home. Walks are over teams, whose members of one number each follow them with their heads:
  // ranks of a walk are teams, and its heads are those of a member. Heads of k and v that are fewer than members go to several
  // of these. 1: every rank is a team, with all heads.
  int32_t headRanks = 1;
  GroupWalk forward;
  // Of d_q, d_k and d_v. Empty: as forward.
  GroupWalk gradients;
  // Of gradients whose bits do not depend on the layout: d_k and d_v are computed where the keys lie, of queries that
  // travel. Empty: they are summed where the queries lie, and travel home.
  GroupWalk transposed;
  // Where gradients of keys need all keys that the queries keep: what the blocks of `transposed` have in the place of their own
  // keys, which lie among them. Of one step; rows are those blocks, columns keys, what travels is k and v. Gradients of
  // keys that are not the block's are dropped. Empty: own keys do.
  GroupWalk keys;

  int32_t ranks() const { return int32_t(layout.size()); }
  const GroupWalk &walkOfGradients() const { return gradients.steps.empty() ? forward : gradients; }
  // Rows meet all their keys in one launch of the gradients, which can write d_q.
  bool writesQueryGradients() const;
  int64_t rowsOf(int32_t rank) const { return rowCount(layout[size_t(rank)]); }
  int32_t teams() const { return ranks() / headRanks; }
  std::vector<RowRange> rowsOfTeam(int32_t team) const; // ascending and not adjacent
  WalkShare shareOf(int32_t rank) const;
  HeadRange headsOf(int32_t member, bool areKeys) const;
  // Within a team, as ranks are its members and rows those of the team, one behind the other: the rows of each member, and a
  // walk of one step by which they go to the members of their heads.
  std::vector<std::vector<RowRange>> layoutOfTeam(int32_t team) const;
  GroupWalk walkOfHeads(int32_t team, bool areKeys) const;
  int64_t travellingKeys() const; // rows of k of a forward call, each as often as heads of it travel

  // invalidArgument: a plan that ranks cannot follow, with what is wrong and where.
  Status check() const;

  // Keys that a block of `transposed` of a rank meets in the place of its own; none: its own.
  const ShardLaunch *keysOf(int32_t rank, int32_t block) const;
  // All keys that a launch of the block has, its own or these.
  RowRange keysMetBy(int32_t rank, int32_t block) const;

  // One line for each part; parse is the inverse. corrupt: no such text.
  std::string text() const;
  static Result<GroupPlan> parse(const std::string &text);
};

} // namespace heddle
