//===- Fingerprint.h - memory that must stay as it is -----------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_MEASURE_FINGERPRINT_H
#define HEDDLE_COMPILER_MEASURE_FINGERPRINT_H

#include "runtime/Device/Device.h"

#include <string>
#include <vector>

namespace heddle {

/// What a tensor holds, as 64-bit digests (XXH3) of its pieces.
class Fingerprint {
public:
  Fingerprint(std::string name, const void *host, int64_t bytes);

  /// internal: device memory, which is as long, holds something else; names the tensor.
  Status check(const DeviceBuffer &copy) const;

private:
  std::string name;
  int64_t bytes;
  std::vector<uint64_t> pieces;
};

} // namespace heddle

#endif
