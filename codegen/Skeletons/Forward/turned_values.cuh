// Values of bytes that lie row by row, turned over once, for all blocks: rows of v become, for each dimension, a row of keys
// in the workspace, with zeros up to the next multiple of 16, which the loading thread copies as key-major values when they
// are marked. Warps of all blocks that would be idle take piece after piece, in the order in which items want them, until none
// is left: so whoever waits for a piece waits for a warp that runs.
#pragma once

#include "Forward/sm90_shared.cuh"
#include "Ptx/async_copy.cuh"
#include "Ptx/matrix.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Ptx/streams.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

// 32 keys of a head, by one warp, through kBytes of shared memory that it has for itself: rows arrive there as they are, and
// matrices of 16-bit elements, each a pair of dimensions of one key, are loaded transposed, so that a lane has 16 keys of two
// dimensions.
template <class K> class TurnedPiece {
public:
  static constexpr int kKeys = sm90::kTurnedKeys, kBytes = sm90::turningBytes(K::kValueDim);

  DEV static int32_t ofHead(const ParamsOf<K> &p) { return ceilDiv(p.seqlenK, kKeys); }

  DEV TurnedPiece(const ParamsOf<K> &p, int32_t pair, int32_t number, uint32_t place)
      : p(p), place(place), pair(pair), number(number) {}

  // Its bit, in which word.
  DEV int32_t word() const { return pair * ceilDiv(p.seqlenK, kKeysOfMarks) + number / 32; }
  DEV uint32_t mark() const { return 1u << number % 32; }

  DEV void turn() const {
    load();
    ptx::commitCopies();
    ptx::waitCopies<0>();
    __syncwarp();
    store();
    __syncwarp();
  }

private:
  static constexpr int kVector = sm90::kTurnedVector, kVectors = K::kValueDim / kVector; // of a key
  static constexpr int kSteps = (kVectors + 1) / 2;
  static constexpr bool kIsOdd = kVectors % 2 != 0;

  // Of two keys beside each other, and of two that are 16 apart, no two vectors beside each other have the same banks, of rows
  // of whole 64 bytes.
  DEV static uint32_t placeOf(uint32_t place, int32_t key, int32_t vector) {
    constexpr bool kIsLine = kVectors % 8 == 0, kIsHalf = kVectors % 4 == 0;
    const int32_t shuffle = kIsLine ? key % 2 * 2 + key / 16 * 4 : kIsHalf ? key / 16 * 2 : 0;
    return place + key * K::kValueDim + (vector ^ shuffle) * kVector;
  }

  DEV void load() const {
    const int32_t lane = ptx::rereadLane(), batch = pair / p.kvHeads, first = number * kKeys;
    const int64_t stride = p.valueStride[1];
    const char *const head =
        p.values + batch * p.valueStride[0] + (pair - batch * p.kvHeads) * p.valueStride[2] + first * stride;
#pragma unroll 1
    for (int32_t i = 0; i < kVectors; ++i) {
      const int32_t at = lane + i * 32, key = at / kVectors, vector = at % kVectors;
      ptx::copyAsync16OrZero(placeOf(place, key, vector), head + key * stride + vector * kVector,
                             key < p.seqlenK - first);
    }
  }

  // 32 dimensions a step: eight matrices of two keys beside each other, of two that are 16 apart, of two vectors.
  DEV void store() const {
    const int32_t lane = ptx::rereadLane(), row = lane % 8, quad = lane % 4;
    const int32_t key = row / 2 % 2 * 16 + lane / 8 * 2 + row % 2;
    const int32_t dim = quad / 2 * kVector + lane / 4 * 2, at = number * kKeys + quad % 2 * 16;
    const int64_t pitch = sm90::turnedPitch<int64_t>(p.seqlenK);
    char *to = p.turned + (pair * K::kValueDim + dim) * pitch + at;
    uint32_t arrived = place;
    asm volatile("" : "+r"(arrived)::"memory"); // what lies there is loaded anew
#pragma unroll 1
    for (int32_t step = 0; step < kSteps; ++step, to += 2 * kVector * pitch) {
      const bool isLast = kIsOdd && step == kSteps - 1;
      const int32_t vector = step * 2 + (isLast ? 0 : row / 4);
      uint32_t low[4], high[4];
      ptx::loadMatrix4Transposed(low, placeOf(arrived, key, vector));
      ptx::loadMatrix4Transposed(high, placeOf(arrived, key + 8, vector));
      const bool isPresent = at < pitch && (!isLast || quad < 2);
      ptx::storeGlobal16(to, isPresent, ptx::permuteBytes<0x6420>(low[0], low[1]),
                         ptx::permuteBytes<0x6420>(low[2], low[3]), ptx::permuteBytes<0x6420>(high[0], high[1]),
                         ptx::permuteBytes<0x6420>(high[2], high[3]));
      ptx::storeGlobal16(to + pitch, isPresent, ptx::permuteBytes<0x7531>(low[0], low[1]),
                         ptx::permuteBytes<0x7531>(low[2], low[3]), ptx::permuteBytes<0x7531>(high[0], high[1]),
                         ptx::permuteBytes<0x7531>(high[2], high[3]));
    }
  }

  const ParamsOf<K> &p;
  uint32_t place;
  int32_t pair, number; // of its head, and of it in this

  static_assert(K::kValueDim % kVector == 0, "rows of values are whole vectors of 16 bytes");
};

// A warp that has nothing else to do, by its number among these.
template <class K> class TurningWarp {
  using Piece = TurnedPiece<K>;

public:
  DEV TurningWarp(const ParamsOf<K> &p, int32_t warp) : p(p), place(K::kTurning + warp * Piece::kBytes) {}

  DEV void run() const {
    const int32_t pieces = p.batch * p.kvHeads * Piece::ofHead(p);
    int32_t number = taken();
#pragma unroll 1
    while (number < pieces) {
      const int32_t following = taken(); // asked for while this one is turned over
      const Piece piece = pieceOf(number);
      piece.turn();
      ptx::fenceGlobalCopies();
      __syncwarp();
      if (isLastLane())
        ptx::orRelease(p.turnedMarks + kFirstMark + piece.word(), piece.mark());
      if (isOfLaterSection(number))
        ptx::sleep<kPause>();
      number = following;
    }
  }

private:
  // Nanoseconds. All at once they would push out of the L2 what items of the first section read: full rows of 8k take 983 us,
  // 988 without a pause.
  static constexpr int kPause = 3000;

  DEV bool isOfLaterSection(int32_t number) const { return number >= p.sectionPairs * Piece::ofHead(p); }

  DEV int32_t taken() const {
    return __shfl_sync(kWholeWarp, ptx::addGlobalIf(p.turnedMarks, 1, ptx::rereadLane() == 0), 0);
  }

  // In the order in which items want them: keys after keys of the heads whose items run side by side.
  DEV Piece pieceOf(int32_t number) const {
    const int32_t ofHead = Piece::ofHead(p), ofSection = p.sectionPairs * ofHead, section = number / ofSection;
    const int32_t firstPair = section * p.sectionPairs, pairs = min(p.sectionPairs, p.batch * p.kvHeads - firstPair);
    number -= section * ofSection;
    const int32_t keys = number / pairs;
    return Piece(p, firstPair + number - keys * pairs, keys, place);
  }

  const ParamsOf<K> &p;
  uint32_t place;
};

// What the loading thread knows of them: of a head the first keys, up to the first ones that are missing, and which of 32 heads
// miss none.
template <class K, bool AreTurned> struct TurnedKeys {};
template <class K> class TurnedKeys<K, true> {
public:
  DEV void waitFor(const ParamsOf<K> &p, int32_t pair, int32_t firstKey) {
    if (pair != this->pair)
      begin(pair);
    const int32_t wanted = ceilDiv(min(firstKey + K::kBlockN, p.seqlenK), kTurnedKeys);
    if (pieces >= wanted)
      return;
    const uint32_t *const marks = p.turnedMarks + kFirstMark + pair * ceilDiv(p.seqlenK, kKeysOfMarks);
    while (pieces < wanted) {
      const uint32_t missing = ~ptx::loadAcquire4(marks + pieces / 32) >> pieces % 32;
      pieces += missing == 0 ? 32 - pieces % 32 : __ffs(missing) - 1;
    }
    ptx::fenceGlobalCopies();
    if (pieces >= TurnedPiece<K>::ofHead(p))
      complete |= 1u << pair % 32;
  }

private:
  DEV void begin(int32_t pair) {
    if (pair / 32 != this->pair / 32)
      complete = 0;
    this->pair = pair;
    pieces = complete >> pair % 32 & 1 ? kAll : 0;
  }

  static constexpr int32_t kAll = 0x7fffffff;
  int32_t pair = -1, pieces = 0;
  uint32_t complete = 0;
};

} // namespace heddle
