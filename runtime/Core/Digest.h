// Owns the one digest of the project: content keys, pattern digests, blob checksums. The result is
// always 64 lower-case hex digits. Checked against the vectors of FIPS 180-4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

class Sha256 {
public:
  // Appends bytes; any split of the same bytes into calls gives the same digest.
  Sha256 &update(std::string_view bytes);
  // The digest of everything appended so far; the object may be updated further.
  std::string hex() const;

private:
  void compress(const uint8_t *block);

  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t pending[64] = {};
  size_t pendingBytes = 0;
  uint64_t totalBytes = 0;
};

inline std::string sha256Hex(std::string_view bytes) { return Sha256().update(bytes).hex(); }

} // namespace heddle
