// What the halves of decode by clusters (cluster_decode.cuh) must agree on, said once. Read alike by NVRTC and by the host's
// compiler.
#pragma once

namespace heddle {
namespace decode {

constexpr int kClusterBlocks = 8;
constexpr int kClusterRows = 8;   // most packed rows of a unit: half of those of one mma
constexpr int kMostClusters = 16; // of one unit
constexpr int kClusterWarps = 4;
constexpr int kClusterBlocksOfSm = 2;
constexpr int kClusterTile = 64; // keys of a tile in elements of two bytes
// Most keys of a call, of all kv heads and as many as tables have room for. 1M of 4 kv heads: 1k keys in such tables take
// 7.7 us, 15.5 by the kernel for other calls, but long sequences of 8 kv heads want all processors, which clusters do not
// reach: 64k keys 71 and 72, 128k 139 and 132, 1M 1,084 and 959 (H200).
constexpr int kMostClusterKeys = 1 << 22;
// Clusters that run at once: SMs that a cluster may have lie together, so some are left over. An H200 of 132 has 30.

// 16 columns of 8 rows, 16 bytes for each lane of a warp, then row maxima and sums.
constexpr int kSliceColumns = 16, kSliceValueBytes = 32 * 16;
constexpr int kSliceBytes = kSliceValueBytes + kClusterRows * 8;

// In memory that is zero between launches, what each warp of a cluster leaves of its rows of the block's columns, and a word
// that counts who has.
constexpr int kRowsOfClusterWarp = kClusterRows / kClusterWarps;
constexpr int kClusterRecordBytes = kRowsOfClusterWarp * (kSliceColumns * 4 + 8) + 16;

} // namespace decode
} // namespace heddle
