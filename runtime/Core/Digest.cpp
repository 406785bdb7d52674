#include "runtime/Core/Digest.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotateRight(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

} // namespace

void Sha256::compress(const uint8_t *block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 | uint32_t(block[4 * i + 2]) << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotateRight(w[i - 15], 7) ^ rotateRight(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = rotateRight(w[i - 2], 17) ^ rotateRight(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t v[8]; // a b c d e f g h, of round i at (index - i) mod 8: nothing moves between rounds
  std::copy(state, state + 8, v);
  for (int begin = 0; begin < 64; begin += 8)
    for (int i = 0; i < 8; ++i) {
      auto at = [&](int index) -> uint32_t & { return v[(index + 8 - i) % 8]; };
      const uint32_t a = at(0), b = at(1), c = at(2), e = at(4), f = at(5), g = at(6);
      const uint32_t s1 = rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25);
      const uint32_t t1 = at(7) + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[begin + i] + w[begin + i];
      const uint32_t s0 = rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22);
      at(3) += t1;
      at(7) = t1 + s0 + ((a & b) ^ (a & c) ^ (b & c));
    }
  for (int i = 0; i < 8; ++i)
    state[i] += v[i];
}

Sha256 &Sha256::update(std::string_view bytes) {
  totalBytes += bytes.size();
  while (!bytes.empty()) {
    if (pendingBytes == 0 && bytes.size() >= sizeof(pending)) {
      compress(reinterpret_cast<const uint8_t *>(bytes.data()));
      bytes.remove_prefix(sizeof(pending));
      continue;
    }
    size_t taken = std::min(sizeof(pending) - pendingBytes, bytes.size());
    std::memcpy(pending + pendingBytes, bytes.data(), taken);
    pendingBytes += taken;
    bytes.remove_prefix(taken);
    if (pendingBytes == sizeof(pending)) {
      compress(pending);
      pendingBytes = 0;
    }
  }
  return *this;
}

std::string Sha256::hex() const {
  Sha256 last = *this;
  uint64_t bits = totalBytes * 8;
  std::string padding(1, char(0x80));
  padding.append((119 - pendingBytes) % 64, 0);
  for (int i = 7; i >= 0; --i)
    padding.push_back(char(bits >> (8 * i)));
  last.update(padding);
  std::string text;
  text.reserve(64);
  for (uint32_t word : last.state)
    for (int shift = 28; shift >= 0; shift -= 4)
      text.push_back("0123456789abcdef"[(word >> shift) & 15]);
  return text;
}

} // namespace heddle
