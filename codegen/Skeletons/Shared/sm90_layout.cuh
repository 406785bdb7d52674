// What the two halves of the Hopper skeleton must agree on, said once: which rows a consumer has, what lies where in
// shared memory and in the workspace. Read alike by NVRTC and by the host's compiler.
#pragma once

namespace heddle {
namespace sm90 {

constexpr int kConsumerRows = 64, kWarpRows = 16; // of a warpgroup's mma, and of each of its warps
constexpr int kMaxConsumers = 4, kProducerWarps = 4;
constexpr int kTeamItems = 4, kTeamCounters = 4, kMaxTeam = 8; // Backward/sm90_cta_teams.cuh
constexpr int kKeyStep = 16, kMaxKeys = 128;                   // of a tile: kept columns of one row fit one word
constexpr int kHeadDimStep = 8, kMaxHeadDim = 256;             // columns of a product
constexpr int kMaxStages = 6, kMaxQueryStages = 2;
// Values of bytes and of floats arrive row by row, and two warps turn them over (Forward/sm90_transposer.cuh): those that
// wgmma takes as they are have two bytes, or lie key-major.
template <class Int> constexpr bool areTurnedOver(Int elementBytes, bool areKeyMajor = false) {
  return elementBytes != 2 && !areKeyMajor;
}
constexpr int kTransposerWarps = 2;
// They wait in two rings: bytes in two slots of the first and in one less of the second, floats, which are large, in one
// slot of the first.
constexpr int kMaxRawStages = 2;
template <class Int> constexpr Int rawStages(Int elementBytes) { return elementBytes == 1 ? kMaxRawStages : 1; }
template <class Int> constexpr Int valueStages(Int stages, Int elementBytes, bool areKeyMajor = false) {
  return elementBytes == 1 && stages > 1 && !areKeyMajor ? stages - 1 : stages;
}

// KernelConfig::grid and KernelConfig::softmax.
constexpr int kGridTile = 0, kGridStride = 1, kGridDynamic = 3;
constexpr int kSoftmaxOnline = 0, kSoftmaxAnchored = 1, kSoftmaxByRow = 2;

// How d_q comes about in backward kernels: added to sums from registers, by those who make scores or by a warpgroup of
// its own, in no order or in that of the keys; or by a walk of its own.
constexpr int kReduceRegisters = 0, kReduceWarpgroup = 1, kReduceNone = 2, kReduceOrdered = 3;
// Registers of that warpgroup, and of all four of a block at their launch, for each thread of one.
constexpr int kReducerRegisters = 72, kBlockRegisters = 512;
// The widest head whose d_k and d_v one warpgroup of a backward kernel holds for 64 keys; of floats, whose rows are raised
// (Backward/sm90_raised_rows.cuh), beside the sums of one tile.
constexpr int kMaxJointDim = 128, kMaxRaisedJointDim = 64;

// Tiles lie in shared memory as columns of 128 bytes of each row, swizzled over 128 bytes.
constexpr int kColumnRowBytes = 128;
constexpr int kTileAlignment = 1024;
constexpr int kBarrierBytes = 1024; // barriers of the rings and headers of items and tiles

template <class Int> constexpr Int columnsOf(Int dim, Int elementBytes) {
  return (dim * elementBytes + kColumnRowBytes - 1) / kColumnRowBytes;
}
template <class Int> constexpr Int tileBytes(Int rows, Int dim, Int elementBytes) {
  return columnsOf(dim, elementBytes) * rows * kColumnRowBytes;
}

// Floats whose products have all their digits lie there as pairs of fp16 (Shared/float_pairs.cuh): in each row all the big
// ones, behind them all the small ones, each from a step of products on, of values from a column of 128 bytes on.
constexpr int kPairStep = 16, kPairColumn = 64;
template <class Int> constexpr Int pairedDim(Int dim, Int step) { return 2 * ((dim + step - 1) / step * step); }
// Of heads so wide scores of a tile and the output of the one before have room beside each other.
template <class Int> constexpr bool overlapsPairs(Int valueDim) { return valueDim <= 64; }
// What k and v of a key are to be multiplied by, and as much as a copy takes at least.
constexpr int kKeyFactorBytes = 16;

// Turned values, and key-major ones, have a row of keys for each of their dimensions. Products of the weights with rows of ones are the sums of
// rows, behind the columns of the output; bytes have ones behind the values of each tile, floats for all tiles together.
constexpr int kOnesRows = 8, kOnesBytes = kOnesRows * kColumnRowBytes;
template <class Int> constexpr Int sumColumns(Int elementBytes) { return areTurnedOver(elementBytes) ? kOnesRows : 0; }
template <class Int> constexpr bool sharesOnes(Int elementBytes) { return elementBytes == 4; }
template <class Int> constexpr Int turnedBytes(Int keys, Int valueDim, Int elementBytes) {
  return tileBytes(valueDim + (sharesOnes(elementBytes) ? 0 : kOnesRows), keys, elementBytes);
}

// Key-major values arrive as rows of so many keys, of which a tile may use fewer; with two maps of k, of even keys and of
// odd ones.
constexpr int kArrivingKeys = kColumnRowBytes, kKeyHalves = 2;
// Those that are turned over once (Forward/turned_values.cuh) have whole vectors of so many bytes for each dimension in the
// workspace.
constexpr int kTurnedVector = 16;
// Each of the warps that do so has room for so many keys, and marks them with a bit, in words of a head; before these a word
// counts what is taken.
constexpr int kTurnedKeys = 32, kKeysOfMarks = 32 * kTurnedKeys, kFirstMark = 4;
template <class Int> constexpr Int turningBytes(Int valueDim) { return valueDim * kTurnedKeys; }
template <class Int> constexpr Int turnedPitch(Int keys) {
  return (keys + kTurnedVector - 1) / kTurnedVector * kTurnedVector;
}

// Totals of the output of so many rows, and for each lane what they are relative to and their sums.
template <class Int> constexpr Int totalBytes(Int rows, Int valueDim) { return rows * (valueDim + 8) * 4; }

// Split-KV: splits of one item, splits that several blocks share at a time, and slots of a block for what it does not
// share.
constexpr int kMaxSplits = 64;
constexpr int kSplitSlots = 256;
constexpr int kOwnSlots = 2;

// What a warp leaves of its rows: for each lane 16 bytes of every value tile, then row maxima and sums.
constexpr int kStatePieceBytes = 32 * 16;
template <class Int> constexpr Int stateBytes(Int valueDim) { return (valueDim / 8 + 1) * kStatePieceBytes; }

// The workspace in 32-bit words, zero at the start up to the states. Without splits it ends behind the counter, or with
// the chain of items that blocks got from it.
namespace workspace {
constexpr int kNextItem = 0; // of a dynamic grid
// slots given to splits, slots whose split was taken up
constexpr int kReserved = 2, kTaken = 3;
constexpr int kArrivals = 4, kChain = 4;                              // of each slot and warp
constexpr int kEntries = kArrivals + kSplitSlots * 4 * kMaxConsumers; // of each slot: item number + 1, record
constexpr int kStates = kEntries + 2 * kSplitSlots;
} // namespace workspace

} // namespace sm90
} // namespace heddle
