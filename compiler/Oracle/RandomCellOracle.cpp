// Follows docs/language.md, "Random cells", line by line in 64-bit arithmetic.
#include "compiler/Oracle/PatternOracle.h"

namespace heddle::oracle {
namespace {

constexpr int64_t kTwoTo32 = int64_t(1) << 32;
constexpr int64_t kA = 2654435769, kB = 1779033703, kC = 3144134277;

int64_t times(int64_t word, int64_t factor) {
  return int64_t(static_cast<unsigned __int128>(word) * factor % kTwoTo32);
}
int64_t plus(int64_t word, int64_t other) { return (word + other) % kTwoTo32; }
/// word xor floor(word / 2^places)
int64_t folded(int64_t word, int places) { return word ^ word / (int64_t(1) << places); }

int64_t mix(int64_t word) { return folded(times(folded(times(folded(word, 16), kB), 15), kC), 16); }

int64_t roundOf(int64_t half, int64_t roundKey) { return times(folded(times(half ^ roundKey, kB), 15), kC) / 65536; }

} // namespace

int64_t randomCell(int64_t seed, int64_t head, int64_t t, int64_t extent, int64_t cell) {
  int64_t key = mix(plus(mix(plus(seed, times(head + 1, kA))), times(t, kA)));
  int bits = 2;
  while ((int64_t(1) << bits) < extent)
    ++bits;
  int64_t lows = int64_t(1) << (bits + 1) / 2, highs = int64_t(1) << bits / 2;
  do {
    int64_t low = cell % lows, high = cell / lows;
    for (int64_t round = 0; round < 6; ++round) {
      int64_t roundKey = plus(key, times(round, kA));
      if (round % 2 == 0)
        low ^= roundOf(high, roundKey) % lows;
      else
        high ^= roundOf(low, roundKey) % highs;
    }
    cell = high * lows + low;
  } while (cell >= extent);
  return cell;
}

} // namespace heddle::oracle
