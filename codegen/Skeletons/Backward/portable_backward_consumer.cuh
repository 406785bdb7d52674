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
template <class K> struct GradientPart {
  static constexpr int kParts = K::kWarps / K::kStepRowTiles;
  static constexpr int kGroups = K::kSumColumns / kSumGroupColumns;
  int32_t rowTile, part;
  DEV GradientPart() : rowTile(threadIdx.x / 32 % K::kStepRowTiles), part(threadIdx.x / 32 / K::kStepRowTiles) {}
};

template <class K> class KeyWalk : WarpRows<KeyItem<K>> {
  using Rows = WarpRows<KeyItem<K>>;
  using Rows::p, Rows::item, Rows::shared;
  using Rows::rowsFirst, Rows::summedRows, Rows::warpRow, Rows::laneRow, Rows::firstRow;
  using Pattern = typename K::Pattern;
  using Params = ParamsOf<K>;
  using Scores = typename K::Scores;
  using ScoreOperand = typename K::ScoreOperand;
  using KeyFactors = heddle::KeyFactors<K>;
  using TilePlace = heddle::TilePlace<K>;
  using GradientPart = heddle::GradientPart<K>;

public:
  using Item = KeyItem<K>;

  DEV KeyWalk(const Params &p, const Item &item, uint32_t shared)
      : Rows(p, item, shared), arguments(p, item.batch, item.head) {
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i) {
      this->clearTile(keyGradient[i]);
      this->clearTile(valueGradient[i]);
    }
  }

  // One query tile, for all gradients.
  DEV void step(const TileRing<Item> &ring, const QueryTile &tile) {
    ScoreOperand weights, gradients;
    KeyFactors factors;
    makeWeights(weights, factors, ring, tile);
    makeGradients(gradients, weights, factors, ring, tile);
    if (!K::kWalksQueries && warpSlice<K>() == 0)
      K::kElementBytes == 4 ? storeFloats(gradients) : storeScores(gradients);
    mmaSum<K, K::kSmemRowBytesV>(valueGradient, weights, ring.values() + summedRows(K::kSmemRowBytesV));
    if constexpr (!K::kWalksQueries)
      __syncthreads();
    mmaSum<K, K::kSmemRowBytesQK>(keyGradient, gradients, ring.rows() + summedRows(K::kSmemRowBytesQK));
    if constexpr (!K::kWalksQueries)
      addQueryGradient(tile);
  }

  DEV void finish() {
    arguments.leave();
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i) {
      this->template storeTensor<K::kHeadDim, K::kAddsToKeys>(p.rowGradient, p.rowGradientStride, keyGradient[i], i,
                                                              p.scaleLog2 * kLogOf2);
      this->template storeTensor<K::kValueDim, K::kAddsToKeys>(p.valueGradient, p.valueGradientStride, valueGradient[i],
                                                               i, 1.f);
    }
  }

private:
  // P = 2^(s - lse), 0 where a pair is not kept.
  DEV void makeWeights(ScoreOperand &weights, KeyFactors &factors, const TileRing<Item> &ring,
                       const QueryTile &tile) const {
    Scores scores;
    this->makeScores(scores, ring);
    if constexpr (Pattern::kHasScore)
      changeScores(scores, factors, tile);
    if (tile.isMasked()) {
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
        maskScores(scores[i], placeOf(tile, i));
    }
    const float scale = Pattern::kHasScore ? kLog2OfE : p.scaleLog2;
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      int32_t lse[2];
      ptx::loadShared8(ring.statistics() + threadIdx.x % 4 * 8 + n * 32, lse);
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          scores[i][n][slot] = ptx::exp2Approx(fmaf(scores[i][n][slot], scale, -__int_as_float(lse[slot % 2])));
    }
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
      packScores<K>(weights[i], scores[i]);
    if (mayPassOne<K>(ring.statistics()))
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
        cutWeights<typename K::Element>(weights[i]);
  }

  DEV void changeScores(Scores &scores, KeyFactors &factors, const QueryTile &tile) const {
    const float natural = p.scaleLog2 * kLogOf2;
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i) {
      const TilePlace place = placeOf(tile, i);
      packFactors(factors[i], scores[i], place, natural);
      applyScores(scores[i], place, natural);
    }
  }

  // dS = P (dP - delta), times the derivative of the chain of scores. P is rounded, as it is in the value gradient.
  DEV void makeGradients(ScoreOperand &gradients, const ScoreOperand &weights, const KeyFactors &factors,
                         const TileRing<Item> &ring, const QueryTile &tile) {
    Scores products;
    this->makeProducts(products, ring);
#pragma unroll
    for (int n = 0; n < K::kQueryTiles; ++n) {
      int32_t delta[2];
      ptx::loadShared8(ring.statistics() + K::kBlockM * 4 + threadIdx.x % 4 * 8 + n * 32, delta);
#pragma unroll
      for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float weight[2];
          unpackScores<K>(weight, weights[i], n, half);
#pragma unroll
          for (int e = 0; e < 2; ++e)
            products[i][n][2 * half + e] = weight[e] * (products[i][n][2 * half + e] - __int_as_float(delta[e]));
        }
    }
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i) {
      if (K::kGradientCount > 0 && warpSlice<K>() == 0) // the other has the same pairs
        arguments.add(tile.head, products[i], factors[i], placeOf(tile, i));
      applyFactors(products[i], factors[i]);
      packScores<K>(gradients[i], products[i]);
    }
  }

  // dS of floats, queries in rows: lane 4 r + c has keys r and r + 8 of rows 2 c and 2 c + 1 of each eight. Key 2 c of
  // eight is column c, key 2 c + 1 column c + 4, as operands that are summed over have them.
  DEV void storeFloats(const ScoreOperand &operand) const {
    const uint32_t lane = threadIdx.x % 32, key = lane / 4, row = lane % 4 * 2;
    const uint32_t to = shared + K::kSmemScores + row * K::kScoreRowBytes + key / 2 * K::kElementBytes;
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t piece = (warpRow() + i * kMmaRows + half * 8) / K::kPieceElements + key % 2;
#pragma unroll
        for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            ptx::storeShared4(to + (n * 8 + e) * K::kScoreRowBytes + (piece ^ (row + e)) * kPieceBytes,
                              operand[i][n][2 * e + half]);
      }
  }

  // dS, keys in rows: lane 4 r + c has columns 2 c and 2 c + 1 of each eight, which fall into banks of their own.
  DEV void storeScores(const ScoreOperand &operand) const {
    const uint32_t lane = threadIdx.x % 32, row = lane / 4;
    const uint32_t to = shared + K::kSmemScores + (warpRow() + row) * K::kScoreRowBytes + lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
      for (int n = 0; n < K::kQueryTiles; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          ptx::storeShared4(to + (i * kMmaRows + half * 8) * K::kScoreRowBytes + (n ^ row % 8) * kPieceBytes,
                            operand[i][n / 2][n % 2 * 2 + half]);
  }

  // This warp's part of dQ = dS K, straight from registers.
  DEV void addQueryGradient(const QueryTile &tile) const {
    const GradientPart part;
    uint32_t a[1][K::kBlockN / K::kMmaStep][4];
    loadScores(a[0], part.rowTile);
    const int32_t rate = placeOf(tile, 0).queryRate;
    const int32_t row = tile.firstRow + rate * (part.rowTile * kMmaRows + laneRow());
    const int32_t base = firstSumRow<K>(item.batch, p.heads, tile.head, 0, p.seqlenQ);
    float *first = p.queryGradient + sumPlace<K>(base + row),
          *second = p.queryGradient + sumPlace<K>(base + row + 8 * rate);
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
  DEV void loadScores(uint32_t (&a)[K::kBlockN / K::kMmaStep][4], int32_t rowTile) const {
    const uint32_t scores = shared + K::kSmemScores;
    if constexpr (K::kElementBytes == 4) {
      const uint32_t rows = scores + rowTile * kMmaRows * K::kScoreRowBytes + rowsFirst(K::kScoreRowBytes);
#pragma unroll
      for (int step = 0; step < K::kBlockN / K::kMmaStep; ++step)
        ptx::loadMatrix4(a[step], columnBlock(rows, step));
    } else {
      const uint32_t columns = columnBlock(scores + laneOffsetColumnsFirst(K::kScoreRowBytes), rowTile);
#pragma unroll
      for (int step = 0; step < K::kBlockN / K::kMmaStep; ++step)
        ptx::loadMatrix4Transposed(a[step], columns + step * K::kMmaStep * K::kScoreRowBytes);
    }
  }

  // A group of 16 columns.
  DEV void mmaQueryGradient(float (&sum)[1][2][4], const uint32_t (&a)[1][K::kBlockN / K::kMmaStep][4],
                            int32_t group) const {
    using E = typename K::Element;
    this->clearTile(sum[0]);
    const uint32_t keys =
        columnBlock(shared + K::kSmemK + summedRows(K::kSmemRowBytesQK), group * (kSumGroupColumns / K::kMmaStep));
    if constexpr (K::kElementBytes == 4) {
      tf32Sum<E, K::kSmemRowBytesQK>(sum, a, keys);
    } else {
#pragma unroll
      for (int step = 0; step < K::kBlockN / K::kMmaStep; ++step) {
        uint32_t b[4];
        ptx::loadMatrix4Transposed(b, keys + step * K::kMmaStep * K::kSmemRowBytesQK);
        ptx::mma<E>(sum[0][0], a[0][step], b[0], b[1]);
        ptx::mma<E>(sum[0][1], a[0][step], b[2], b[3]);
      }
    }
  }

  DEV static void addPiece(float *to, bool isPresent, const float (&sum)[2][4], int half) {
    if constexpr (K::kVectorAdds) {
      ptx::addGlobal16(to, isPresent, sum[0][2 * half], sum[0][2 * half + 1], sum[1][2 * half], sum[1][2 * half + 1]);
    } else {
#pragma unroll
      for (int word = 0; word < kSumPieceFloats; ++word)
        ptx::addGlobal4(to + word, isPresent, sum[word / 2][2 * half + word % 2]);
    }
  }

  DEV TilePlace placeOf(const QueryTile &tile, int i) const { return TilePlace(p, item, tile, firstRow(i)); }

  ArgumentGradients<K> arguments;
  float keyGradient[K::kRowTiles][kSliceTiles<K, K::kHeadDim>][4];
  float valueGradient[K::kRowTiles][kSliceTiles<K, K::kValueDim>][4];
};

} // namespace heddle
