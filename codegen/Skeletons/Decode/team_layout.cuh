// What the halves of batch-invariant decode by clusters (team_decode.cuh) must agree on, said once. Read alike by NVRTC and by
// the host's compiler.
#pragma once

#include "Decode/decode_layout.cuh"

namespace heddle {
namespace decode {

constexpr int kTeamBlocks = kFanIn;   // of a cluster, each with a part of a team
constexpr int kTeamRows = 8;          // most packed rows of a unit: half of those of one mma
constexpr int kMostTeamClusters = 16; // of one unit
constexpr int kTeamWarps = 4, kTeamBlocksOfSm = 2;

// What a block gets of a part: 16 columns of 8 rows, 16 bytes for each lane of a warp, then row maxima and sums. Those of one
// team are on their way while those of the one before are added.
constexpr int kTeamColumns = 16, kTeamValueBytes = 32 * 16, kTeamSliceBytes = kTeamValueBytes + kTeamRows * 8;
constexpr int kTeamBuffers = 2;

// What warps of a block tell each other of a tile (slice_rows.cuh): for each warp weights of 16 rows and their sums, and the
// largest score of each row.
template <class Int> constexpr Int wordBytes(Int warps, Int chunkN) {
  return warps * (chunkN / 16 * (16 * 32) + 8 * 32 + kRows * 4);
}

} // namespace decode
} // namespace heddle
