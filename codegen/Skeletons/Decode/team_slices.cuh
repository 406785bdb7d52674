// How parts become one in batch-invariant decode by clusters (team_decode.cuh): slices of 16 columns of them are sent through
// the cluster, a team at a time, and added by the blocks that they are sent to, as invariant_parts.cuh adds them.
#pragma once

#include "Decode/arrivals.cuh"
#include "Decode/cluster_ring.cuh"
#include "Decode/invariant_parts.cuh"
#include "Decode/slice_rows.cuh"
#include "Decode/team_layout.cuh"
#include "Decode/unit_rows.cuh"
#include "Ptx/barriers.cuh"
#include "Ptx/cluster.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/registers.cuh"

namespace heddle {

// Rows of a slice that a warp adds: a quad for each, as often as there are quads.
struct TeamRows {
  static constexpr int kRows = decode::kTeamRows / decode::kTeamWarps, kLanes = 4 * kRows;

  DEV static int32_t lane() { return ptx::rereadLane(); }
  DEV static bool isFirstCopy() { return lane() < kLanes; }
  DEV static int32_t rowOfWarp() { return lane() % kLanes / 4; }
  DEV static int32_t row() { return ptx::rereadThreadIndex() / 32 * kRows + rowOfWarp(); }
};

// 16 columns of rows, four of them in each lane; the first lane of a row has its sum.
struct TeamSlice {
  float out[4], rowMax, sum;

  DEV void clear() {
    rowMax = kNoRowMax, sum = 0.f;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      out[e] = 0.f;
  }
  DEV void keepHere() {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      ptx::keepHere(out[e]);
    ptx::keepHere(sum);
  }
  // As addNext() of shares.
  DEV void add(const float (&end)[2], const float (&values)[4], bool exists = true) {
    const float next = exists ? end[0] : kNoRowMax;
    const NextWeights weights(rowMax, next);
    rowMax = weights.whole;
    sum = fmaf(end[1], weights.next, product(sum, weights.before));
#pragma unroll
    for (int e = 0; e < 4; ++e)
      out[e] = fmaf(values[e], weights.next, product(out[e], weights.before));
  }
};

// What the blocks of a cluster have of the columns that a block adds: each sends its own. A team has every other buffer.
template <class K> struct SentParts {
  static constexpr int kBuffer = decode::kTeamBlocks * decode::kTeamSliceBytes, kBytes = decode::kTeamBuffers * kBuffer;
  uint32_t slices, barriers;

  DEV explicit SentParts(uint32_t shared) : slices(shared + K::kSmemSlices), barriers(shared + K::kSmemBarrier) {}

  // Call first, with all threads.
  DEV void expect() const {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int buffer = 0; buffer < decode::kTeamBuffers; ++buffer)
        ptx::initBarrier(barrierOf(buffer), 1);
      ptx::fenceBarrierInit();
#pragma unroll
      for (int buffer = 0; buffer < decode::kTeamBuffers; ++buffer)
        ptx::arriveExpecting(barrierOf(buffer), kBuffer);
    }
    __syncwarp();
    ptx::arriveInCluster();
  }
  DEV void send(const SharedRows<K> &rows, int32_t rank, int32_t number) const {
    ColumnShare<K> share;
    rows.give(share, 0);
    const int32_t lane = ptx::rereadLane(), buffer = number % decode::kTeamBuffers;
#pragma unroll
    for (int s = 0; s < K::kPairsOfWarp; ++s)
      if (ColumnShare<K>::hasPair(s)) {
        const int32_t to = ColumnShare<K>::pairOf(s);
        const uint32_t own = ptx::addressInBlock(bufferOf(buffer) + rank * decode::kTeamSliceBytes, to);
        const uint32_t bell = ptx::addressInBlock(barrierOf(buffer), to);
        ptx::sendInCluster16(own + lane * 16, bell, share.out[s][0], share.out[s][1], share.out[s][2], share.out[s][3]);
        ptx::sendInCluster8(own + decode::kTeamValueBytes + lane / 4 * 8, bell, lane % 4 == 0, share.rowMax, share.sum);
      }
  }
  // The sum of team `number` of the cluster.
  DEV void join(TeamSlice &team, int32_t number) const {
    const int32_t buffer = number % decode::kTeamBuffers;
    float end[decode::kTeamBlocks][2], values[decode::kTeamBlocks][4];
    ptx::waitParity(barrierOf(buffer), number / decode::kTeamBuffers % 2);
#pragma unroll
    for (int part = 0; part < decode::kTeamBlocks; ++part) {
      const uint32_t from = bufferOf(buffer) + part * decode::kTeamSliceBytes;
      int32_t words[2];
      ptx::loadShared8(from + decode::kTeamValueBytes + TeamRows::row() * 8, words);
      end[part][0] = __int_as_float(words[0]);
      end[part][1] = TeamRows::lane() % 4 == 0 ? __int_as_float(words[1]) : 0.f;
      ptx::loadShared16(from + TeamRows::row() * 64 + TeamRows::lane() % 4 * 16, values[part]);
    }
    team.clear();
#pragma unroll
    for (int part = 0; part < decode::kTeamBlocks; ++part)
      team.add(end[part], values[part]);
  }
  // Behind join(), for the team after the next: all that came has been looked at.
  DEV void expectAgain(int32_t number) const {
    if (threadIdx.x == 0)
      ptx::arriveExpecting(barrierOf(number % decode::kTeamBuffers), kBuffer);
  }

private:
  DEV uint32_t bufferOf(int32_t buffer) const { return slices + buffer * kBuffer; }
  DEV uint32_t barrierOf(int32_t buffer) const { return barriers + buffer * 8; }
};

// What clusters of a unit have of a block's columns, a slot for each team, in the workspace.
template <class K> struct TeamSlots {
  static constexpr int kValues = TeamRows::kRows * 64, kSlot = kValues + 16, kAtOnce = decode::kFanIn;
  static constexpr int kTeam = decode::kTeamBlocks * K::kWarps * kSlot;
  using Grid = ClusterGrid<decode::kTeamBlocks>;
  char *first; // that of this warp of the first team
  uint32_t *arrivals;

  DEV TeamSlots(const ParamsOf<K> &p, int32_t rank) {
    const int32_t unit = Grid::unit(), warp = ptx::rereadThreadIndex() / 32;
    const int32_t most = static_cast<int32_t>(p.slotsOfBlock) - (decode::kFanIn + decode::kSumsOfBlock);
    const int32_t own = rank * K::kWarps + warp;
    first = p.states + (static_cast<int64_t>(unit) * most * kTeam + own * kSlot);
    arrivals = p.arrivals + (unit * (decode::kTeamBlocks * K::kWarps) + own);
  }

  DEV void store(const TeamSlice &slice, int32_t team) const {
    const int32_t lane = TeamRows::lane();
    char *const to = first + team * kTeam;
    ptx::storeGlobal16(to + lane * 16, TeamRows::isFirstCopy(), slice.out[0], slice.out[1], slice.out[2], slice.out[3]);
    ptx::storeGlobal8(to + kValues + lane / 4 * 8, TeamRows::isFirstCopy() && lane % 4 == 0,
                      __float_as_uint(slice.rowMax), __float_as_uint(slice.sum));
  }
  DEV void join(TeamSlice &sum, int32_t teams) const {
    sum.clear();
#pragma unroll 1
    for (int32_t team = 0; team < teams; team += kAtOnce) {
      float end[kAtOnce][2], values[kAtOnce][4];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const char *const from = first + min(team + i, teams - 1) * kTeam;
        ptx::loadGlobal8(reinterpret_cast<const float *>(from + kValues + TeamRows::rowOfWarp() * 8), true, end[i]);
        ptx::loadGlobal16(from + TeamRows::lane() % TeamRows::kLanes * 16, values[i]);
        end[i][1] = TeamRows::lane() % 4 == 0 ? end[i][1] : 0.f;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        sum.add(end[i], values[i], team + i < teams);
    }
  }
};

// Where a block writes its columns of this lane's row: known before they are.
template <class K> struct TeamTarget {
  char *to;
  float *lse;
  float scale;
  bool isOwn;

  DEV TeamTarget(const ParamsOf<K> &p, const Unit<K> &unit, int32_t rank) {
    const PackedRow row(unit, TeamRows::row());
    const RowPlace place = placeOf<K>(p, unit.sequence, row.index);
    to = static_cast<char *>(p.out) +
         (rowOffset(place, row.head, p.outStride) + rank * decode::kTeamColumns) * kOutBytes;
    lse = p.lse + ((static_cast<int64_t>(place.batch) * p.heads + row.head) * p.seqlenQ + place.row);
    scale = p.ofValues(unit.scalePair(p));
    isOwn = row.exists && TeamRows::isFirstCopy();
    ptx::keepHere(to);
    ptx::keepHere(lse);
  }

  // As writeColumns().
  DEV void write(const TeamSlice &slice, int32_t rank) const {
    const RowSum sum = rowSum<typename K::Element>(slice.rowMax, slice.sum);
    const float inverse = sum.ofProducts == 0.f ? 0.f : ptx::reciprocalApprox(sum.ofProducts) * scale;
    float values[2][2];
#pragma unroll
    for (int e = 0; e < 4; ++e)
      values[e / 2][e % 2] = slice.out[e] * inverse;
    K::Values::Columns::template store<K::kOutFloat32 != 0>(to, isOwn, values);
    ptx::storeGlobal4(lse, isOwn && rank == 0 && TeamRows::lane() % 4 == 0,
                      __float_as_uint((slice.rowMax + ptx::log2Approx(sum.ofWeights)) * kLogOf2));
  }

private:
  static constexpr int kOutBytes = K::kOutFloat32 ? 4 : K::kElementBytes;
};

// The sums of a block's columns, as its parts come to an end. All threads of all blocks of the cluster call everything.
template <class K> class TeamSums {
public:
  DEV TeamSums(const ParamsOf<K> &p, const Unit<K> &unit, uint32_t shared, int32_t clusters, int32_t teams)
      : p(p), unit(unit), sent(shared), clusters(clusters), teams(teams), rank(ptx::rankInCluster()), number(0) {
    first = ClusterGrid<decode::kTeamBlocks>::cluster();
    count = ceilDiv(teams - first, clusters);
    all.clear();
  }

  // Teams of the cluster of which parts are not finished.
  DEV bool areLeft() const { return number < count; }

  // The block's part of the next team is in `rows`; a part of no tiles leaves them clear.
  DEV void finish(const SharedRows<K> &rows) {
    if (number != 1)
      ptx::waitForCluster(); // all blocks are there, and later, have looked at what came two teams ago
    sent.send(rows, rank, number);
    if (number > 0)
      add(number - 1);
    if (number > 0 && number + 1 < count)
      ptx::arriveInCluster();
    ++number;
  }

  // Behind the last team.
  DEV void end() {
    if (!addsColumns())
      return;
    const TeamTarget<K> target(p, unit, rank);
    add(count - 1);
    if (clusters > 1) {
      const TeamSlots<K> slots(p, rank);
      if (!arrivesLast(slots.arrivals, clusters))
        return;
      slots.join(all, teams);
    }
    addSink();
    target.write(all, rank);
  }

private:
  DEV bool addsColumns() const { return rank < K::kValuePairs; }

  DEV void add(int32_t team) {
    if (!addsColumns())
      return;
    TeamSlice slice;
    sent.join(slice, team);
    if (team + decode::kTeamBuffers < count)
      sent.expectAgain(team);
    if (clusters > 1)
      TeamSlots<K>(p, rank).store(slice, first + team * clusters);
    else
      all.add({slice.rowMax, slice.sum}, slice.out);
    all.keepHere(); // what was sent has been looked at
  }
  DEV void addSink() {
    if constexpr (K::Pattern::kHasSink) {
      float end[2];
      findSink(end[0], end[1], p, unit, TeamRows::row());
      all.add(end, {0.f, 0.f, 0.f, 0.f});
    }
  }

  const ParamsOf<K> &p;
  const Unit<K> &unit;
  const SentParts<K> sent;
  const int32_t clusters, teams, rank;
  int32_t first, count, number; // of the cluster's teams: the first one, how many, the next one
  TeamSlice all;
};

} // namespace heddle
