//===- Fingerprint.cpp ----------------------------------------------------===//
#include "compiler/Measure/Fingerprint.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>

namespace heddle {

constexpr int64_t kPieceBytes = int64_t(32) << 20;

static uint64_t digestOf(const void *data, int64_t bytes) {
  return llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), size_t(bytes)));
}

Fingerprint::Fingerprint(std::string name, const void *host, int64_t bytes) : name(std::move(name)), bytes(bytes) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes)
    pieces.push_back(digestOf(static_cast<const std::byte *>(host) + at, std::min(kPieceBytes, bytes - at)));
}

Status Fingerprint::check(const DeviceBuffer &copy) const {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t at = int64_t(i) * kPieceBytes, count = std::min(kPieceBytes, bytes - at);
    HEDDLE_TRY(copy.copyTo(piece.data(), count, at));
    if (digestOf(piece.data(), count) != pieces[i])
      return Status::internal("a kernel wrote into '" + name + "', which it may only read");
  }
  return Status();
}

} // namespace heddle
