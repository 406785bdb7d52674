// Owns what the ranks of a team do around a walk: q, k and v go to the members of their heads, each of which follows the walk
// with all rows of the team, and what it wrote goes home.
#pragma once

#include "runtime/Distributed/CallFields.h"

namespace heddle {

class HeadExchange {
public:
  // `base`: of the workspace; any multiple of 256 while only its size is asked for. The request, of a plan whose teams have
  // several ranks, outlives this.
  HeadExchange(const GroupRequest &request, int32_t rank, char *base);
  HeadExchange(const HeadExchange &) = delete;

  uint64_t workspaceBytes() const { return memory.bytes(); }
  // Those of the walk, in the workspace: all rows of the team, of the rank's heads.
  heddle_attention_args argumentsOfWalk() const;

  Status arrive(const RankView &team, ShardDevice &device) const;
  Status leave(const RankView &team, ShardDevice &device) const;

private:
  bool isBackward() const { return request.kind.isBackward(); }
  WalkRun makeRun(const GroupWalk &walk, bool areKeys, std::vector<WalkField> fields,
                  std::vector<WalkField> results) const;
  WalkRun makeQueries() const;
  WalkRun makeKeys() const;

  const GroupRequest &request;
  const int32_t team, member;
  const std::vector<RowRange> own; // rows, among those of the team
  const int64_t rows;              // of the team
  const GroupWalk walkOfQueries, walkOfKeys;
  Memory memory;
  WalkRun queries, keys;
};

} // namespace heddle
