// A warp with keys: scores are transposed, keys in rows and queries in columns, so that the weights P and dS are
// operands of dV += P^T dOut and dK += dS^T Q from registers; dS goes through shared memory to dQ = dS K, of which
// every warp has 16 rows, or some columns of them. Where d_q has a walk of its own (portable_query_walk.cuh), it stays
// in registers.
#pragma once

#include "Backward/dq_accumulation.cuh"
#include "Backward/portable_backward_products.cuh"
#include "Backward/tile_places.cuh"
#include "Ptx/wide_memory.cuh"

namespace heddle {

// Where this warp's part of dQ lies: rows of a tile of 16, and every kParts-th group of 16 columns from `part` on.
struct GradientPart {
  static constexpr int kParts = kWarps / kStepRowTiles;
  static constexpr int kGroups = kSumColumns / kSumGroupColumns;
  int32_t rowTile, part;
  DEV GradientPart() : rowTile(threadIdx.x / 32 % kStepRowTiles), part(threadIdx.x / 32 / kStepRowTiles) {}
};

class KeyWalk : WarpRows<KeyItem> {
public:
  using Item = KeyItem;

  DEV KeyWalk(const KernelParams &p, const KeyItem &item, uint32_t shared)
      : WarpRows(p, item, shared), arguments(p, item.batch, item.head) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      clearTile(keyGradient[i]);
      clearTile(valueGradient[i]);
    }
  }

  // One query tile, for all gradients.
  DEV void step(const TileRing<KeyItem> &ring, const QueryTile &tile) {
    ScoreOperand weights, gradients;
    KeyFactors factors;
    makeWeights(weights, factors, ring, tile);
    makeGradients(gradients, weights, factors, ring, tile);
    if (!kWalksQueries && warpSlice() == 0)
      kElementBytes == 4 ? storeFloats(gradients) : storeScores(gradients);
    mmaSum<KernelTraits::kSmemRowBytesV>(valueGradient, weights,
                                         ring.values() + summedRows(KernelTraits::kSmemRowBytesV));
    if constexpr (!kWalksQueries)
      __syncthreads();
    mmaSum<KernelTraits::kSmemRowBytesQK>(keyGradient, gradients,
                                          ring.rows() + summedRows(KernelTraits::kSmemRowBytesQK));
    if constexpr (!kWalksQueries)
      addQueryGradient(tile);
  }

  DEV void finish() {
    arguments.leave();
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      storeTensor<KernelTraits::kHeadDim, kAddsToKeys>(p.rowGradient, p.rowGradientStride, keyGradient[i], i,
                                                       p.scaleLog2 * kLogOf2);
      storeTensor<KernelTraits::kValueDim, kAddsToKeys>(p.valueGradient, p.valueGradientStride, valueGradient[i], i,
                                                        1.f);
    }
  }

private:
  // P = 2^(s - lse), 0 where a pair is not kept.
  DEV void makeWeights(ScoreOperand &weights, KeyFactors &factors, const TileRing<KeyItem> &ring,
                       const QueryTile &tile) const {
    Scores scores;
    makeScores(scores, ring);
    if constexpr (Pattern::kHasScore)
      changeScores(scores, factors, tile);
    if (tile.isMasked()) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
        maskScores(scores[i], placeOf(tile, i));
    }
    const float scale = Pattern::kHasScore ? kLog2OfE : p.scaleLog2;
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n) {
      int32_t lse[2];
      ptx::loadShared8(ring.statistics() + threadIdx.x % 4 * 8 + n * 32, lse);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          scores[i][n][slot] = ptx::exp2Approx(fmaf(scores[i][n][slot], scale, -__int_as_float(lse[slot % 2])));
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      packScores(weights[i], scores[i]);
    if (mayPassOne(ring.statistics()))
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
        cutWeights<kQueryTiles>(weights[i]);
  }

  DEV void changeScores(Scores &scores, KeyFactors &factors, const QueryTile &tile) const {
    const float natural = p.scaleLog2 * kLogOf2;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const TilePlace place = placeOf(tile, i);
      packFactors(factors[i], scores[i], place, natural);
      applyScores(scores[i], place, natural);
    }
  }

  // dS = P (dP - delta), times the derivative of the chain of scores. P is rounded, as it is in the value gradient.
  DEV void makeGradients(ScoreOperand &gradients, const ScoreOperand &weights, const KeyFactors &factors,
                         const TileRing<KeyItem> &ring, const QueryTile &tile) {
    Scores products;
    makeProducts(products, ring);
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n) {
      int32_t delta[2];
      ptx::loadShared8(ring.statistics() + kBlockM * 4 + threadIdx.x % 4 * 8 + n * 32, delta);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float weight[2];
          unpackScores(weight, weights[i], n, half);
#pragma unroll
          for (int e = 0; e < 2; ++e)
            products[i][n][2 * half + e] = weight[e] * (products[i][n][2 * half + e] - __int_as_float(delta[e]));
        }
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      if (kGradientCount > 0 && warpSlice() == 0) // the other has the same pairs
        arguments.add(tile.head, products[i], factors[i], placeOf(tile, i));
      applyFactors(products[i], factors[i]);
      packScores(gradients[i], products[i]);
    }
  }

  // dS of floats, queries in rows: lane 4 r + c has keys r and r + 8 of rows 2 c and 2 c + 1 of each eight. Key 2 c of
  // eight is column c, key 2 c + 1 column c + 4, as operands that are summed over have them.
  DEV void storeFloats(const ScoreOperand &operand) const {
    const uint32_t lane = threadIdx.x % 32, key = lane / 4, row = lane % 4 * 2;
    const uint32_t to = shared + KernelTraits::kSmemScores + row * kScoreRowBytes + key / 2 * kElementBytes;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t piece = (warpRow() + i * kMmaRows + half * 8) / kPieceElements + key % 2;
#pragma unroll
        for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            ptx::storeShared4(to + (n * 8 + e) * kScoreRowBytes + (piece ^ (row + e)) * kPieceBytes,
                              operand[i][n][2 * e + half]);
      }
  }

  // dS, keys in rows: lane 4 r + c has columns 2 c and 2 c + 1 of each eight, which fall into banks of their own.
  DEV void storeScores(const ScoreOperand &operand) const {
    const uint32_t lane = threadIdx.x % 32, row = lane / 4;
    const uint32_t to = shared + KernelTraits::kSmemScores + (warpRow() + row) * kScoreRowBytes + lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          ptx::storeShared4(to + (i * kMmaRows + half * 8) * kScoreRowBytes + (n ^ row % 8) * kPieceBytes,
                            operand[i][n / 2][n % 2 * 2 + half]);
  }

  // This warp's part of dQ = dS K, straight from registers.
  DEV void addQueryGradient(const QueryTile &tile) const {
    const GradientPart part;
    uint32_t a[1][kBlockN / kMmaStep][4];
    loadScores(a[0], part.rowTile);
    const int32_t rate = placeOf(tile, 0).queryRate;
    const int32_t row = tile.firstRow + rate * (part.rowTile * kMmaRows + laneRow());
    const int32_t base = firstSumRow(item.batch, p.heads, tile.head, 0, p.seqlenQ);
    float *first = p.queryGradient + sumPlace(base + row), *second = p.queryGradient + sumPlace(base + row + 8 * rate);
#pragma unroll
    for (int number = 0; number < GradientPart::kGroups; number += GradientPart::kParts) {
      const int32_t group = number + part.part;
      if (GradientPart::kGroups % GradientPart::kParts == 0 || group < GradientPart::kGroups) {
        float sum[1][2][4];
        mmaQueryGradient(sum, a, group);
        const int32_t offset = group * kSumGroupFloats + threadIdx.x % 4 * kSumPieceFloats;
        addPiece(first + offset, row < p.seqlenQ, sum[0], 0);
        addPiece(second + offset, row + 8 * rate < p.seqlenQ, sum[0], 1);
      }
    }
  }

  // 16 rows of dS.
  DEV void loadScores(uint32_t (&a)[kBlockN / kMmaStep][4], int32_t rowTile) const {
    const uint32_t scores = shared + KernelTraits::kSmemScores;
    if constexpr (kElementBytes == 4) {
      const uint32_t rows = scores + rowTile * kMmaRows * kScoreRowBytes + rowsFirst(kScoreRowBytes);
#pragma unroll
      for (int step = 0; step < kBlockN / kMmaStep; ++step)
        ptx::loadMatrix4(a[step], columnBlock(rows, step));
    } else {
      const uint32_t columns = columnBlock(scores + laneOffsetColumnsFirst(kScoreRowBytes), rowTile);
#pragma unroll
      for (int step = 0; step < kBlockN / kMmaStep; ++step)
        ptx::loadMatrix4Transposed(a[step], columns + step * kMmaStep * kScoreRowBytes);
    }
  }

  // A group of 16 columns.
  template <class E = Element>
  DEV void mmaQueryGradient(float (&sum)[1][2][4], const uint32_t (&a)[1][kBlockN / kMmaStep][4], int32_t group) const {
    clearTile(sum[0]);
    const uint32_t keys = columnBlock(shared + KernelTraits::kSmemK + summedRows(KernelTraits::kSmemRowBytesQK),
                                      group * (kSumGroupColumns / kMmaStep));
    if constexpr (kElementBytes == 4) {
      tf32Sum<E, KernelTraits::kSmemRowBytesQK>(sum, a, keys);
    } else {
#pragma unroll
      for (int step = 0; step < kBlockN / kMmaStep; ++step) {
        uint32_t b[4];
        ptx::loadMatrix4Transposed(b, keys + step * kMmaStep * KernelTraits::kSmemRowBytesQK);
        ptx::mma<E>(sum[0][0], a[0][step], b[0], b[1]);
        ptx::mma<E>(sum[0][1], a[0][step], b[2], b[3]);
      }
    }
  }

  DEV static void addPiece(float *to, bool isPresent, const float (&sum)[2][4], int half) {
    if constexpr (KernelTraits::kVectorAdds) {
      ptx::addGlobal16(to, isPresent, sum[0][2 * half], sum[0][2 * half + 1], sum[1][2 * half], sum[1][2 * half + 1]);
    } else {
#pragma unroll
      for (int word = 0; word < kSumPieceFloats; ++word)
        ptx::addGlobal4(to + word, isPresent, sum[word / 2][2 * half + word % 2]);
    }
  }

  DEV TilePlace placeOf(const QueryTile &tile, int i) const { return TilePlace(p, item, tile, firstRow(i)); }

  ArgumentGradients arguments;
  float keyGradient[kRowTiles][kSliceTiles<KernelTraits::kHeadDim>][4];
  float valueGradient[kRowTiles][kSliceTiles<KernelTraits::kValueDim>][4];
};

} // namespace heddle
