// On the host: mma of a warpgroup, which happen when they are waited for, by all lanes of a warp together. A descriptor is the address of an operand and
// the distance of its columns of 128 bytes.
#pragma once

namespace heddle {
namespace ptx {

inline void fenceMma() {}
inline void commitMma() {
  host_gpu::self().committedMma.push_back(std::move(host_gpu::self().openMma));
  host_gpu::self().openMma.clear();
}
template <int Pending> void waitMma() {
  auto &groups = host_gpu::self().committedMma;
  for (; groups.size() > Pending; groups.pop_front())
    for (const auto &mma : groups.front())
      mma();
  host_gpu::waitForWarp();
}
template <int N> void pin(float (&)[N][4]) {}
inline void pin(float &) {}
template <int N> void forget(float (&values)[N][4]) {
  for (auto &row : values)
    for (float &value : row)
      value = NAN;
}

template <uint32_t ColumnBytes> uint64_t sharedOperand(uint32_t address, uint32_t offset) {
  return uint64_t(ColumnBytes) << 32 | (address + offset);
}

template <class T> T sharedOperandAt(uint32_t address) {
  T value;
  std::memcpy(&value, ::sharedMemory + (address ^ (address >> 7 & 7) << 4), sizeof value);
  return value;
}

// How elements lie in operands: as many as one mma sums, element x of row `row` of what lies in rows of 128 bytes, and
// number k of a row of A in registers, `words` of its lanes.
template <class Element> struct Operands {
  static constexpr int kStep = 16;
  static float at(uint64_t operand, uint32_t row, uint32_t x) {
    const uint32_t address = uint32_t(operand) + row * 128 + x % 64 * 2 + x / 64 * uint32_t(operand >> 32);
    float value, none;
    Element::unpack(sharedOperandAt<uint16_t>(address), value, none);
    return value;
  }
  static float ofRow(const uint32_t (*words)[8], int half, int k) {
    float values[2];
    Element::unpack(words[k / 2 % 4][half + k / 8 * 2], values[0], values[1]);
    return values[k % 2];
  }
};
template <> struct Operands<E4m3> {
  static constexpr int kStep = 32;
  static float at(uint64_t operand, uint32_t row, uint32_t x) {
    return e4m3Value(sharedOperandAt<uint8_t>(uint32_t(operand) + row * 128 + x));
  }
  static float ofRow(const uint32_t (*words)[8], int half, int k) {
    return e4m3Value(words[k / 4 % 4][half + k / 16 * 2] >> k % 4 * 8 & 0xff);
  }
};
template <> struct Operands<Tf32> {
  static constexpr int kStep = 8;
  static float at(uint64_t operand, uint32_t row, uint32_t x) {
    return asTf32(sharedOperandAt<uint32_t>(uint32_t(operand) + row * 128 + x * 4));
  }
  static float ofRow(const uint32_t (*words)[8], int half, int k) { return asTf32(words[k % 4][half + k / 4 * 2]); }
};

template <int N, class Element> struct WarpgroupMma {
  typedef float Sum[N / 8][4];
  typedef Operands<Element> In;
  static constexpr int kStep = In::kStep;
  static constexpr bool kIsPacked = kStep == 16; // whose rows may lie along N

  template <bool Accumulate, bool AreTransposed = false> static void ofShared(Sum &d, uint64_t a, uint64_t b) {
    later<Accumulate, AreTransposed>(d, a, b);
  }
  template <bool Accumulate = true> static void ofRegisters(Sum &d, const uint32_t (&a)[4], uint64_t b) {
    auto &words = host_gpu::warp().words;
    const uint32_t lane = host_gpu::lane();
    for (int i = 0; i < 4; ++i)
      words[lane][i] = a[i];
    host_gpu::waitForWarp();
    Rows rows;
    for (int half = 0; half < 2; ++half)
      for (int k = 0; k < kStep; ++k)
        rows.values[half][k] = In::ofRow(words + lane / 4 * 4, half, k);
    host_gpu::waitForWarp();
    host_gpu::self().openMma.push_back([&d, rows, b] { multiply<Accumulate, kIsPacked>(d, rows, b); });
  }

private:
  struct Rows { // of A: the two of this lane
    float values[2][kStep];
  };

  template <bool Accumulate, bool IsTransposed> static void later(Sum &d, uint64_t a, uint64_t b) {
    const uint32_t first = host_gpu::current % 128 / kLanes * 16 + host_gpu::lane() / 4;
    host_gpu::self().openMma.push_back([&d, a, b, first] {
      Rows rows;
      for (uint32_t half = 0; half < 2; ++half)
        for (uint32_t k = 0; k < kStep; ++k) {
          const uint32_t row = first + 8 * half;
          rows.values[half][k] = In::at(a, IsTransposed ? k : row, IsTransposed ? row : k);
        }
      multiply<Accumulate, IsTransposed>(d, rows, b);
    });
  }

  template <bool Accumulate, bool IsTransposed> static void multiply(Sum &d, const Rows &rows, uint64_t b) {
    for (uint32_t n = 0; n < N / 8; ++n)
      for (uint32_t e = 0; e < 2; ++e) {
        const uint32_t column = n * 8 + host_gpu::lane() % 4 * 2 + e;
        double totals[2];
        for (int half = 0; half < 2; ++half)
          totals[half] = Accumulate ? d[n][2 * half + e] : 0;
        for (uint32_t k = 0; k < kStep; ++k) {
          const float value = In::at(b, IsTransposed ? k : column, IsTransposed ? column : k);
          for (int half = 0; half < 2; ++half)
            totals[half] += double(rows.values[half][k]) * value;
        }
        for (int half = 0; half < 2; ++half)
          d[n][2 * half + e] = float(totals[half]);
      }
  }
};

template <class Mma, int Count, int Tiles, class OfA, class OfB>
void startSum(float (&sum)[Tiles][4], const OfA &ofA, const OfB &ofB) {
  Mma::template ofShared<false>(sum, ofA(0), ofB(0));
  for (int i = 1; i < Count; ++i)
    Mma::template ofShared<true>(sum, ofA(i), ofB(i));
}

} // namespace ptx
} // namespace heddle
