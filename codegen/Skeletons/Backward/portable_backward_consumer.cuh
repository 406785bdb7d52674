// A warp: kRowTiles x 16 keys of the item and, of their gradients, all columns or a slice. Scores are transposed, keys in rows and queries in columns, so that the weights
// P and dS are operands of dV += P^T d_out and dK += dS^T Q from registers; dS goes through shared memory to dQ = dS K,
// of which every warp has 16 rows, or some columns of them.
#pragma once

namespace heddle {

typedef float Scores[kRowTiles][kQueryTiles][4];
typedef uint32_t ScoreOperand[kRowTiles][kQuerySteps][4];
typedef ScoreFactors<kQueryTiles> KeyFactors[kRowTiles];

// scores = keys times queries^T: lane addresses of this warp's rows (rows first) and of queries (columns first).
template <int Steps, int RowBytes> DEV void mmaScores(Scores &scores, uint32_t keys, uint32_t queries) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[i][n][e] = 0.f;
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    uint32_t a[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
      ptx::loadMatrix4(a[i], columnBlock(keys, step) + i * kMmaRows * RowBytes);
    const uint32_t column = columnBlock(queries, step);
#pragma unroll
    for (int pair = 0; pair < kQueryTiles / 2; ++pair) {
      uint32_t b[4];
      ptx::loadMatrix4(b, column + pair * 16 * RowBytes);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        ptx::mma<Element>(scores[i][2 * pair], a[i], b[0], b[1]);
        ptx::mma<Element>(scores[i][2 * pair + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// Tiles of eight columns of a gradient that a warp has; the last slice may end before.
template <int Dim> constexpr int kSliceTiles = kSlices == 1 ? Dim / 8 : roundUp((Dim / 8 + 1) / 2, 2);

DEV int32_t warpSlice() { return kSlices == 1 ? 0 : threadIdx.x / 32 % kSlices; }

// sum += weights (keys x queries) times this warp's columns of rows (queries x dim): the lane address in rows (rows
// first). What lies behind the last column is of the same rows, and its sums are not used.
template <int RowBytes, int Tiles>
DEV void mmaSum(float (&sum)[kRowTiles][Tiles][4], const ScoreOperand &weights, uint32_t rows) {
  const int32_t first = warpSlice() * (Tiles / 2);
#pragma unroll
  for (int step = 0; step < kQuerySteps; ++step)
#pragma unroll
    for (int pair = 0; pair < (Tiles + 1) / 2; ++pair) {
      uint32_t b[4];
      ptx::loadMatrix4Transposed(b, columnBlock(rows, first + pair) + step * kMmaStep * RowBytes);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        ptx::mma<Element>(sum[i][2 * pair], weights[i][step], b[0], b[1]);
        if (2 * pair + 1 < Tiles)
          ptx::mma<Element>(sum[i][2 * pair + 1], weights[i][step], b[2], b[3]);
      }
    }
}

// Where this warp's part of dQ lies: rows of a tile of 16, and every kParts-th group of 16 columns from `part` on.
struct GradientPart {
  static constexpr int kParts = kWarps / kQuerySteps;
  static constexpr int kGroups = kSumColumns / kSumGroupColumns;
  int32_t rowTile, part;
  DEV GradientPart() : rowTile(threadIdx.x / 32 % kQuerySteps), part(threadIdx.x / 32 / kQuerySteps) {}
};

class Consumer {
public:
  DEV Consumer(const KernelParams &p, const KeyItem &item, uint32_t shared)
      : p(p), item(item), shared(shared), arguments(p, item.batch, item.head) {}

  DEV void clear() {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      clearTile(keyGradient[i]);
      clearTile(valueGradient[i]);
    }
  }

  // One query tile, for all gradients.
  DEV void step(const QueryRing &ring, const QueryTile &tile) {
    ScoreOperand weights, gradients;
    KeyFactors factors;
    makeWeights(weights, factors, ring, tile);
    makeGradients(gradients, weights, factors, ring, tile);
    if (warpSlice() == 0)
      storeScores(gradients);
    mmaSum<KernelTraits::kSmemRowBytesV>(valueGradient, weights, ring.outs() + rowsFirst(KernelTraits::kSmemRowBytesV));
    __syncthreads();
    mmaSum<KernelTraits::kSmemRowBytesQK>(keyGradient, gradients,
                                          ring.queries() + rowsFirst(KernelTraits::kSmemRowBytesQK));
    addQueryGradient(tile);
  }

  // One query tile, for the sums that delta is made of.
  DEV void addBranchSums(const QueryRing &ring, const QueryTile &tile) const {
    if (warpSlice() != 0)
      return;
    ScoreOperand weights;
    KeyFactors factors;
    makeWeights(weights, factors, ring, tile);
    Scores products;
    makeProducts(products, ring);
    const BranchSums sums(p, item.batch, tile, classTile(tile.firstRow, placeOf(tile, 0).queryRate));
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const ColumnSums column = sumColumn(weights, products, n, e);
        const int32_t row = threadIdx.x % 4 * 2 + n * 8 + e;
        const bool isPresent = threadIdx.x % 32 < 4;
        ptx::addGlobal4(sums.products + row, isPresent, column.products);
        ptx::addGlobal4(sums.weights + row, isPresent, column.weights);
      }
  }

  DEV void storeGradients() {
    arguments.leave();
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      storeTensor<KernelTraits::kHeadDim>(p.keyGradient, p.keyGradientStride, keyGradient[i], i, p.scaleLog2 * kLogOf2);
      storeTensor<KernelTraits::kValueDim>(p.valueGradient, p.valueGradientStride, valueGradient[i], i, 1.f);
    }
  }

private:
  template <int N> DEV static void clearTile(float (&sum)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        sum[n][slot] = 0.f;
  }

  // P = 2^(s - lse), 0 where a pair is not kept.
  DEV void makeWeights(ScoreOperand &weights, KeyFactors &factors, const QueryRing &ring, const QueryTile &tile) const {
    Scores scores;
    mmaScores<kHeadSteps, KernelTraits::kSmemRowBytesQK>(
        scores, ownRows(KernelTraits::kSmemK, KernelTraits::kSmemRowBytesQK),
        ring.queries() + laneOffsetColumnsFirst(KernelTraits::kSmemRowBytesQK));
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

  // dP^T = V d_out^T.
  DEV void makeProducts(Scores &products, const QueryRing &ring) const {
    mmaScores<kValueSteps, KernelTraits::kSmemRowBytesV>(
        products, ownRows(KernelTraits::kSmemV, KernelTraits::kSmemRowBytesV),
        ring.outs() + laneOffsetColumnsFirst(KernelTraits::kSmemRowBytesV));
  }

  // dS = P (dP - delta), times the derivative of the chain of scores. P is rounded, as it is in the value gradient.
  DEV void makeGradients(ScoreOperand &gradients, const ScoreOperand &weights, const KeyFactors &factors,
                         const QueryRing &ring, const QueryTile &tile) {
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
          Element::unpack(weights[i][n / 2][n % 2 * 2 + half], weight[0], weight[1]);
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

  struct ColumnSums {
    float weights, products;
  };

  // Over this warp's keys: P and P dP.
  DEV static ColumnSums sumColumn(const ScoreOperand &weights, const Scores &products, int n, int e) {
    ColumnSums sums = {0.f, 0.f};
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float pair[2];
        Element::unpack(weights[i][n / 2][n % 2 * 2 + half], pair[0], pair[1]);
        sums.weights += pair[e];
        sums.products = fmaf(pair[e], products[i][n][2 * half + e], sums.products);
      }
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      sums.weights += __shfl_xor_sync(0xffffffffu, sums.weights, distance);
      sums.products += __shfl_xor_sync(0xffffffffu, sums.products, distance);
    }
    return sums;
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
    uint32_t a[kBlockN / kMmaStep][4];
    const uint32_t scores =
        columnBlock(shared + KernelTraits::kSmemScores + laneOffsetColumnsFirst(kScoreRowBytes), part.rowTile);
#pragma unroll
    for (int step = 0; step < kBlockN / kMmaStep; ++step)
      ptx::loadMatrix4Transposed(a[step], scores + step * kMmaStep * kScoreRowBytes);
    const int32_t rate = placeOf(tile, 0).queryRate;
    const int32_t row = tile.firstRow + rate * (part.rowTile * kMmaRows + laneRow());
    const int32_t base = firstSumRow(item.batch, p.heads, tile.head, 0, p.seqlenQ);
    float *first = p.queryGradient + sumPlace(base + row), *second = p.queryGradient + sumPlace(base + row + 8 * rate);
#pragma unroll
    for (int number = 0; number < GradientPart::kGroups; number += GradientPart::kParts) {
      const int32_t group = number + part.part;
      if (GradientPart::kGroups % GradientPart::kParts == 0 || group < GradientPart::kGroups) {
        float sum[2][4];
        mmaQueryGradient(sum, a, group);
        const int32_t offset = group * kSumGroupFloats + threadIdx.x % 4 * kSumPieceFloats;
        addPiece(first + offset, row < p.seqlenQ, sum, 0);
        addPiece(second + offset, row + 8 * rate < p.seqlenQ, sum, 1);
      }
    }
  }

  DEV void mmaQueryGradient(float (&sum)[2][4], const uint32_t (&a)[kBlockN / kMmaStep][4], int32_t group) const {
    clearTile(sum);
    const uint32_t keys = columnBlock(shared + KernelTraits::kSmemK + rowsFirst(KernelTraits::kSmemRowBytesQK), group);
#pragma unroll
    for (int step = 0; step < kBlockN / kMmaStep; ++step) {
      uint32_t b[4];
      ptx::loadMatrix4Transposed(b, keys + step * kMmaStep * KernelTraits::kSmemRowBytesQK);
      ptx::mma<Element>(sum[0], a[step], b[0], b[1]);
      ptx::mma<Element>(sum[1], a[step], b[2], b[3]);
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

  template <int Dim, int N>
  DEV void storeTensor(void *to, const int64_t (&stride)[3], const float (&sums)[N][4], int i, float scale) const {
    constexpr int kTiles = Dim / 8, kFirst = kTiles < N ? kTiles : N; // of the first slice
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t key = firstKey(i) + item.rate * half * 8;
      char *row = static_cast<char *>(to) +
                  (item.batch * stride[0] + key * stride[1] + item.kvHead * stride[2]) * kGradientBytes;
      const bool exists = key <= item.last;
      if (warpSlice() == 0)
        storeColumns<kFirst>(row, exists, sums, half, scale);
      else if constexpr (kFirst < kTiles)
        storeColumns<kTiles - kFirst>(row + kFirst * 8 * kGradientBytes, exists, sums, half, scale);
    }
  }

  template <int Tiles, int N>
  DEV static void storeColumns(char *row, bool exists, const float (&sums)[N][4], int half, float scale) {
    float values[Tiles][2];
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        values[n][e] = sums[n][2 * half + e] * scale;
    storeGradient(row, exists, values);
  }

  DEV static int32_t laneRow() { return threadIdx.x % 32 / 4; }
  DEV static int32_t warpRow() { return threadIdx.x / 32 / kSlices * (kRowTiles * kMmaRows); }
  DEV static uint32_t rowsFirst(int rowBytes) { return laneOffsetRowsFirst(rowBytes); }
  DEV uint32_t ownRows(uint32_t tile, int rowBytes) const {
    return shared + tile + warpRow() * rowBytes + rowsFirst(rowBytes);
  }
  DEV int32_t firstKey(int i) const { return item.first + item.rate * (warpRow() + i * kMmaRows + laneRow()); }
  DEV TilePlace placeOf(const QueryTile &tile, int i) const { return TilePlace(p, item, tile, firstKey(i)); }

  const KernelParams &p;
  const KeyItem &item;
  uint32_t shared;
  ArgumentGradients arguments;
  float keyGradient[kRowTiles][kSliceTiles<KernelTraits::kHeadDim>][4];
  float valueGradient[kRowTiles][kSliceTiles<KernelTraits::kValueDim>][4];
};

} // namespace heddle
