// The sums of the query gradient in groups of columns (dq_accumulation.cuh). Read alike by NVRTC and by the host's
// compiler.
#pragma once

namespace heddle {

constexpr int kSumRowGroup = 8, kSumPieceFloats = 4, kSumPiecesOfRow = 4;
constexpr int kSumGroupColumns = kSumPieceFloats * kSumPiecesOfRow;
constexpr int kSumGroupFloats = kSumRowGroup * kSumGroupColumns; // from a group to the next one

} // namespace heddle
