// The products of one warp with keys and values as they lie in memory: elements of the type of q, or e4m3 beside it, of which
// fp16 is made, that has all their digits, in registers between shared memory and the products. So are the other operands:
// weights, and rows of q, each times a power of two that brings its largest element near the end of the range of fp16, which
// bf16 exceeds; elements that are lost are below 2^-38 of that. Addresses of lanes are those of 16-byte pieces, whatever is
// in them.
#pragma once

#include "Forward/float_mma.cuh"
#include "Forward/online_softmax.cuh"
#include "Ptx/memory.cuh"

namespace heddle {

// What products of one warp say of the rows of k.
template <class Traits, bool AreScaled = Traits::kHasScaledKeys> struct KeyProductShape : Traits {
  static constexpr int kKeyRowBytes = Traits::kSmemRowBytesQK;
};
template <class Traits> struct KeyProductShape<Traits, true> : Traits {
  static_assert(Traits::kQueryInRegisters, "rows of q are made fp16 once");
  static constexpr int kKeyRowBytes = Traits::kSmemRowBytesK;
};

template <class K, bool AreScaled = K::kHasScaledKeys> struct KeyProducts : WarpProducts<K> {
  struct Query : QueryOperand<K> {
    DEV Query(uint32_t tile, float) : QueryOperand<K>(tile) {}
  };

  // The same sums for 16 columns, number `pair`, of 16 rows.
  DEV static void probabilityValueOfPair(float (&out)[2][4], const Probabilities<K> &probabilities, uint32_t values,
                                         int32_t pair) {
    const uint32_t columns = columnBlock(values, pair);
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step) {
      uint32_t b[4];
      ptx::loadMatrix4Transposed(b, columns + step * (K::kMmaStep * K::kSmemRowBytesV));
      ptx::mma<typename K::Element>(out[0], probabilities[0][step], b[0], b[1]);
      ptx::mma<typename K::Element>(out[1], probabilities[0][step], b[2], b[3]);
    }
  }
};

// Rows of bf16 or fp16 as a warp's operand of products with e4m3, of which a lane has four dimensions side by side: words 0
// and 2, of row r, and 1 and 3, of row r + 8, have in lane 4 r + c the columns 4 c to 4 c + 3 of a step.
template <class K> class QueryOfHalves {
  using Half = typename K::OutElement;

public:
  // `descale`: what elements of keys are multiplied by.
  DEV QueryOfHalves(uint32_t tile, float descale) {
    const uint32_t thread = ptx::rereadThreadIndex();
    const int32_t row = thread % 32 / 4;
    const int32_t first = RowWarps<K>::kCount == 1 ? 0 : thread / 32 * (K::kRowTiles * 16);
    address = tile + (first + row) * K::kSmemRowBytesQK;
    place = thread % 4 * kLaneBytes;
    swizzle = row * kPieceBytes;
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      factor[i][0] = factor[i][1] = descale;
  }

  // Call once after the rows have arrived.
  DEV void keepInRegisters() {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int step = 0; step < K::kHeadSteps; ++step)
          read(step, i, half);
        turn(i, half);
      }
  }

  DEV const uint32_t (&fragment(int step, int i) const)[4] { return held[step][i]; }
  // What scores of a row are multiplied by.
  DEV float factorOf(int i, int half) const { return factor[i][half]; }

private:
  static constexpr int kLaneBytes = 8;
  static constexpr int kBias = 127, kExponentShift = 23; // of fp32
  static constexpr int kLargestExponent = 14;            // of a row: one below that of fp16

  DEV void read(int step, int i, int half) {
    const uint32_t row = address + (i * 16 + half * 8) * K::kSmemRowBytesQK;
    int32_t words[2];
    ptx::loadShared8(row + ((step * 2 * kPieceBytes + place) ^ swizzle), words);
    held[step][i][half] = words[0];
    held[step][i][2 + half] = words[1];
  }

  DEV float largestMagnitude(int i, int half) const {
    float largest = 0.f;
#pragma unroll
    for (int step = 0; step < K::kHeadSteps; ++step)
#pragma unroll
      for (int word = half; word < 4; word += 2) {
        float low, high;
        Half::unpack(held[step][i][word], low, high);
        largest = fmaxf(largest, fmaxf(fabsf(low), fabsf(high)));
      }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    return fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
  }

  DEV void turn(int i, int half) {
    const int32_t exponent =
        max(static_cast<int32_t>(__float_as_uint(largestMagnitude(i, half)) >> kExponentShift), kLargestExponent + 1);
    const float scale = __int_as_float((2 * kBias + kLargestExponent - exponent) << kExponentShift);
    factor[i][half] *= __int_as_float((exponent - kLargestExponent) << kExponentShift);
#pragma unroll
    for (int step = 0; step < K::kHeadSteps; ++step)
#pragma unroll
      for (int word = half; word < 4; word += 2) {
        float low, high;
        Half::unpack(held[step][i][word], low, high);
        held[step][i][word] = ptx::packFp16(low * scale, high * scale);
      }
  }

  uint32_t address, place, swizzle;
  float factor[K::kRowTiles][2];
  uint32_t held[K::kHeadSteps][K::kRowTiles][4];
};

template <class K> struct KeyProducts<K, true> : WarpProducts<K> {
  using E = typename K::Element;
  using Query = QueryOfHalves<K>;
  static constexpr int kPieces = 2; // of 16 dimensions in a column block

  DEV static void queryKey(Scores<K> &scores, const Query &query, uint32_t keys) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          scores[i][n][e] = 0.f;
#pragma unroll
    for (int block = 0; block < K::kHeadSteps / kPieces; ++block)
#pragma unroll
      for (int pair = 0; pair < K::kScoreTiles / 2; ++pair) {
        uint32_t words[4];
        ptx::loadMatrix4(words, columnBlock(keys, block) + pair * 16 * K::kKeyRowBytes);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const uint32_t low = ptx::halvesOfE4m3<0>(words[w]), high = ptx::halvesOfE4m3<1>(words[w]);
#pragma unroll
          for (int i = 0; i < K::kRowTiles; ++i)
            ptx::mma<E>(scores[i][2 * pair + w / kPieces], query.fragment(block * kPieces + w % kPieces, i), low, high);
        }
      }
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          scores[i][n][e] *= query.factorOf(i, e / 2);
  }

  // Transposed words have two dimensions of two keys; even dimensions become a tile, odd ones the next (ColumnFours).
  DEV static void probabilityValue(Output<K> &out, const Probabilities<K> &probabilities, uint32_t values) {
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step)
#pragma unroll
      for (int block = 0; block < K::kValueTiles / 4; ++block) {
        uint32_t words[4];
        ptx::loadMatrix4Transposed(words, columnBlock(values, block) + step * K::kMmaStep * K::kSmemRowBytesV);
#pragma unroll
        for (int w = 0; w < 4; ++w)
          words[w] = ptx::permuteBytes<kKeysTogether>(words[w], 0);
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          const uint32_t first = words[2 * piece], last = words[2 * piece + 1]; // keys 0 to 7 and 8 to 15
          const uint32_t even[] = {ptx::halvesOfE4m3<0>(first), ptx::halvesOfE4m3<0>(last)};
          const uint32_t odd[] = {ptx::halvesOfE4m3<1>(first), ptx::halvesOfE4m3<1>(last)};
          const int tile = 4 * block + 2 * piece;
#pragma unroll
          for (int i = 0; i < K::kRowTiles; ++i) {
            ptx::mma<E>(out[i][tile], probabilities[i][step], even[0], even[1]);
            ptx::mma<E>(out[i][tile + 1], probabilities[i][step], odd[0], odd[1]);
          }
        }
      }
  }

  // The same sums for 16 columns, number `pair`, of 16 rows: half of what a load of words brings.
  DEV static void probabilityValueOfPair(float (&out)[2][4], const Probabilities<K> &probabilities, uint32_t values,
                                         int32_t pair) {
    const uint32_t columns = columnBlock(values, pair / 2);
    const bool isUpper = pair % 2 != 0;
#pragma unroll
    for (int step = 0; step < K::kChunkSteps; ++step) {
      uint32_t words[4];
      ptx::loadMatrix4Transposed(words, columns + step * (K::kMmaStep * K::kSmemRowBytesV));
      const uint32_t first = ptx::permuteBytes<kKeysTogether>(isUpper ? words[2] : words[0], 0);
      const uint32_t last = ptx::permuteBytes<kKeysTogether>(isUpper ? words[3] : words[1], 0);
      ptx::mma<E>(out[0], probabilities[0][step], ptx::halvesOfE4m3<0>(first), ptx::halvesOfE4m3<0>(last));
      ptx::mma<E>(out[1], probabilities[0][step], ptx::halvesOfE4m3<1>(first), ptx::halvesOfE4m3<1>(last));
    }
  }

private:
  static constexpr uint32_t kKeysTogether = 0x3120;
};

} // namespace heddle
