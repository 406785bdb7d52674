// How much memory a planning warp's notes of lists take, of cells (cell_bits.cuh) and behind them of tiles
// (sm90_listed_tiles.cuh): read alike by NVRTC and by the host's compiler, which plans it.
#pragma once

namespace heddle {

constexpr int kCellSlots = 4;    // lists that are noted at a time
constexpr int kCellKeyWords = 8; // behind the bits of a list: what tells it apart, its window and what lies behind

// 32-bit words of one list, noted by a warp of so many lanes.
constexpr int cellSlotWords(int lanes) { return lanes + kCellKeyWords; }

constexpr int kCellBytes = 4 * kCellSlots * cellSlotWords(32);
constexpr int kNotedTileBytes = 4 * (32 + 6);

} // namespace heddle
