// Owns how a rank's arguments are cut into those of launches: rows of one of its blocks, columns of a window or of a range.
#pragma once

#include "runtime/Distributed/CallFields.h"
#include "runtime/Distributed/RowEntries.h"

#include <optional>

namespace heddle {

class GroupShare {
public:
  // The request has the rows and heads of the share. `base`: of the workspace; any multiple of 256 while only its size is asked
  // for.
  GroupShare(const GroupRequest &request, WalkShare ofRank, char *base)
      : plan(request.plan), request(request), rank(ofRank.team), share(std::move(ofRank)), args(request.args),
        walk(request.kind.isBackward() ? plan.walkOfGradients() : plan.forward), blocks(walk.blocks[size_t(rank)]),
        memory(base) {
    operands.assign(args.operands, args.operands + args.operand_count);
    auto addSize = [&](int64_t argument, int64_t value) {
      heddle_operand &size = operands.emplace_back();
      size.id = int32_t(argument), size.kind = HEDDLE_OPERAND_INT, size.value.i64 = value;
    };
    for (int64_t argument : plan.wholes)
      addSize(argument, plan.rows);
    for (const RowTensor &tensor : plan.rowTensors)
      addSize(tensor.argument, rowCount(share.rows));
    args.operands = operands.data();
    args.operand_count = operands.size();
  }
  GroupShare(const GroupShare &) = delete;

  Status lay(ShardDevice &device);
  uint64_t workspaceBytes() const { return memory.bytes(); }
  Status run(const RankView &ranks, ShardDevice &device);

private:
  struct Launch {
    KindText kind;
    heddle_attention_args args;
    std::vector<heddle_operand> operands = {}; // of args, where they are of this launch alone
  };
  struct Carry {
    float *out = nullptr, *lse = nullptr;
  };
  // What a launch on one of the rank's blocks of rows needs beside the caller's tensors.
  struct OwnBlock {
    RowRange rows;
    int64_t first = 0;    // its first row in the rank's tensors
    size_t launches = 0;  // of the walk
    Carry carries[2];     // from launch to launch, in turn
    float *lse = nullptr; // of its rows alone, where the rank has other rows or the caller wants none
    float *dLse = nullptr;
    Carry arrived;                        // what guests of these rows brought home, continued by their last launch
    std::vector<heddle_operand> operands; // tensors of rows from the first of its rows on
  };
  // Rows that travel from or to the rank, and what comes of them.
  struct Guest {
    const GuestRows *of;
    RowRange rows;
    size_t launches;                 // of the rank; none: it is home
    char *queries;                   // as they travel
    std::vector<Carry> parts;        // home: of each rank that they meet; else of launch after launch, in turn
    std::vector<int32_t> ranks = {}; // home: whose parts are whose
    std::vector<float *> sums = {};  // home: lse of all parts until this one
  };

  bool isBackward() const { return request.kind.isBackward(); }
  // d_q of another type than fp32 is written.
  KindText kindOfLaunch(bool hasOutOfFloats) const { return kindOf(request, hasOutOfFloats); }
  KindText kindOfGradients() const { return kindOfLaunch(args.out.dtype == HEDDLE_FP32); }
  bool isTransposed() const { return isBackward() && !plan.transposed.steps.empty(); }
  int64_t bytesOf(Role role) const { return heddle::bytesOf(request, role); }
  WalkField fieldOf(Role role) const { return heddle::fieldOf(request, role); }
  WalkField arrayOf(const float *array) const { return heddle::arrayOf(request, array); }

  void layBlocks();
  void layWalks();
  Status layLaunches(ShardDevice &device);

  std::vector<heddle_operand> operandsFrom(int64_t row) const;
  const void *entriesOf(const RowTensor &tensor) const; // of the caller
  std::vector<heddle_operand> operandsAtKeys(size_t step, const ShardLaunch &launch) const;
  heddle_attention_args argsOfBlock(const OwnBlock &block) const;
  Launch forwardLaunch(size_t step, const ShardLaunch &launch, size_t number) const;
  Launch backwardLaunch(size_t step, const ShardLaunch &launch) const;
  Launch transposedLaunch(size_t step, const ShardLaunch &launch) const;
  WalkRun::Besides besidesOfEntries(ShardDevice &device) const;
  // Own keys that a launch of the transposed walk is of, and those that it meets in their place, if these are others.
  const RowRange &ownKeysOf(const ShardLaunch &launch) const {
    return plan.transposed.blocks[size_t(rank)][size_t(launch.rows)];
  }
  const ShardLaunch *allKeysOf(const ShardLaunch &launch) const { return plan.keysOf(rank, launch.rows); }
  // Rows of own keys, among gradients of all keys of the launch.
  RowPlace ownRowsOf(const ShardLaunch &launch, const heddle_tensor &like, float *scratch) const;
  Status clearOwnRows(const ShardLaunch &launch, ShardDevice &device) const;
  Status addOwnRows(const ShardLaunch &launch, ShardDevice &device) const;
  RowCopy copyOfArray(float *rowsAlone, const float *array, const OwnBlock &block, bool isToRows) const;
  void layGuests();
  int64_t guestElements(const Guest &guest) const { return args.q.size[0] * share.heads * guest.rows.size(); }
  uint64_t queryBytes(const Guest &guest) const {
    return uint64_t(guestElements(guest) * args.q.size[3] * bytesOf(Role::q));
  }
  uint64_t partBytes(const Guest &guest) const {
    return uint64_t(guestElements(guest) * (args.v.size[3] + 1)) * sizeof(float);
  }
  RowPlace guestQueries(const Guest &guest) const {
    return RowPlace::ofRows(guest.queries, guest.rows.size(), share.heads, args.q.size[3] * bytesOf(Role::q));
  }
  RowPlace rowsOfPart(const Guest &guest, const Carry &part) const {
    return RowPlace::ofRows(part.out, guest.rows.size(), share.heads, args.v.size[3] * int64_t(sizeof(float)));
  }
  Launch guestLaunch(const Guest &guest, const GuestRows::Meeting &meeting, size_t number) const;
  using UseGuest = std::function<Status(const Guest &guest, const GuestRows::Meeting &meeting, size_t number)>;
  Status forEachMeeting(const UseGuest &use) const; // of the rank
  Status sendGuests(Exchange &exchange, ShardDevice &device) const;
  Status meetGuests(ShardDevice &device) const;
  WalkRun::Besides besidesOfGuests(const RankView &ranks, ShardDevice &device);
  Status sendParts(const RankView &ranks, ShardDevice &device);
  Status mergeGuests(ShardDevice &device) const;
  Status mergeParts(const Guest &guest, ShardDevice &device) const;
  bool isFilling(size_t step, const ShardLaunch &launch) const; // FillingLaunch.h
  bool hasFilling() const;
  Status clearGradients(ShardDevice &device) const;
  Status runForward(const RankView &ranks, ShardDevice &device);
  Status runBackward(const RankView &ranks, ShardDevice &device);
  Status runTransposed(const RankView &ranks, ShardDevice &device);

  const GroupPlan &plan;
  const GroupRequest &request;
  const int32_t rank; // of the walks
  const WalkShare share;
  heddle_attention_args args;
  std::vector<heddle_operand> operands; // the caller's, the sizes of the whole, and rows of tensors
  const GroupWalk &walk;                // from queries to their keys
  const std::vector<RowRange> &blocks;  // of it
  Memory memory;
  std::vector<OwnBlock> own;
  std::optional<WalkRun> ofQueries, transposed, ofKeys;
  std::vector<RowEntries> rowEntries; // of each row tensor, on the transposed walk
  float *scratchQ = nullptr, *scratchK = nullptr,
        *scratchV = nullptr; // gradients that another walk computes, or that are of others' keys
  float *scratchLse = nullptr, *scratchDLse = nullptr; // of the queries of one launch
  std::vector<Guest> guests;
  bool partsHaveLeft = false;
  char *kernelWorkspace = nullptr, *asideWorkspace = nullptr;
  uint64_t kernelBytes = 0;
};

} // namespace heddle
