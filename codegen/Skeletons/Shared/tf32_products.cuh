// Products of one warp where elements are floats. A 16-byte piece of a row is four columns, which ldmatrix gives to
// lanes as an mma of tf32 wants them. It cannot transpose floats: where rows are what a product sums over, lanes load
// them one by one, and lane 4 r + c of operand B holds rows 2 c and 2 c + 1 of each eight: those whose weights it has in
// an operand A that is made of accumulators.
#pragma once

#include "Ptx/memory.cuh"
#include "Shared/shared_tiles.cuh"
#include "Shared/tf32_operands.cuh"

namespace heddle {

// Steps whose products the tensor core sums up, and cuts, before they are added in registers.
template <class E, int Steps> constexpr int kStepsOfSum = !E::kIsExact && Steps % 4 == 0 ? 4 : Steps % 2 == 0 ? 2 : 1;

// scores = rows times columns^T. `fragmentsOf(step, words)`: of the rows, as ldmatrix gives them; `columns`: this lane's
// address (columns first).
template <class E, int Steps, int RowBytes, int Rows, int Tiles, class FragmentsOf>
DEV void tf32Scores(float (&scores)[Rows][Tiles][4], const FragmentsOf &fragmentsOf, uint32_t columns) {
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[i][n][e] = 0.f;
#pragma unroll 1
  for (int step = 0; step < Steps; ++step) { // unrolled, operands of many steps are in registers at a time
    uint32_t words[Rows][4];
    fragmentsOf(step, words);
    Tf32Operand<E, 4> a[Rows];
#pragma unroll
    for (int i = 0; i < Rows; ++i)
      a[i].set(words[i]);
    const uint32_t column = columnBlock(columns, step);
#pragma unroll
    for (int pair = 0; pair < Tiles / 2; ++pair) {
      uint32_t pieces[4];
      ptx::loadMatrix4(pieces, column + pair * 16 * RowBytes);
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        Tf32Operand<E, 2> b;
        b.set({pieces[2 * which], pieces[2 * which + 1]});
#pragma unroll
        for (int i = 0; i < Rows; ++i)
          addProduct<E>(scores[i][2 * pair + which], a[i], b);
      }
    }
  }
}

// This lane's place in rows that a product sums over: row 2 c, column r.
DEV uint32_t laneOffsetOfSums(int rowBytes) {
  const uint32_t lane = threadIdx.x % 32, row = lane % 4 * 2, column = lane / 4;
  constexpr int kPieceFloats = kPieceBytes / sizeof(float);
  return row * rowBytes + ((column / kPieceFloats ^ row) * kPieceBytes) + column % kPieceFloats * sizeof(float);
}

// sum += weights times rows; `rows`: this lane's address, laneOffsetOfSums() from the first one.
template <class E, int RowBytes, int Rows, int Steps, int Tiles>
DEV void tf32Sum(float (&sum)[Rows][Tiles][4], const uint32_t (&weights)[Rows][Steps][4], uint32_t rows) {
  constexpr int kTogether = kStepsOfSum<E, Steps>, kRowsOfStep = kMmaBytes / sizeof(float);
#pragma unroll
  for (int first = 0; first < Steps; first += kTogether) {
    Tf32Operand<E, 4> a[Rows][kTogether];
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int step = 0; step < kTogether; ++step)
        a[i][step].set(weights[i][first + step]);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      float part[Rows][4] = {};
#pragma unroll
      for (int step = 0; step < kTogether; ++step) {
        const uint32_t row = columnBlock(rows, n) + (first + step) * kRowsOfStep * RowBytes;
        Tf32Operand<E, 2> b;
        b.set(0, ptx::loadShared4(row));
        b.set(1, ptx::loadShared4((row ^ kPieceBytes) + RowBytes)); // the next one
#pragma unroll
        for (int i = 0; i < Rows; ++i)
          multiply<E>(part[i], a[i][step], b);
      }
#pragma unroll
      for (int i = 0; i < Rows; ++i)
        addTo(sum[i][n], part[i]);
    }
  }
}

} // namespace heddle
