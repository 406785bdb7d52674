// Owns where every tile of a block lies in dynamic shared memory. Planned once, here; the generated
// KernelTraits prints the offsets, device skeletons assert and use them and never recompute.
// Change both with tests/unit/smem_layout_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// `stages` equal parts of `stageBytes` each, one behind the other.
struct SmemRegion {
  std::string name; ///< "k": device constants kSmemK and kSmemStageBytesK
  int64_t offsetBytes = 0;
  int64_t stageBytes = 0;
  int64_t stages = 1;

  int64_t bytes() const { return stageBytes * stages; }
  int64_t endBytes() const { return offsetBytes + bytes(); }
};

class SmemLayout {
public:
  /// 128-bit copies and permuted rows want tiles on this boundary.
  static constexpr int64_t kAlignmentBytes = 128;

  /// Every region and stage lies at a multiple of `alignmentBytes`.
  explicit SmemLayout(int64_t alignmentBytes = kAlignmentBytes) : alignment(alignmentBytes) {}

  /// Places a region behind all others and returns its offset.
  int64_t append(std::string name, int64_t stageBytes, int64_t stages = 1);

  const std::vector<SmemRegion> &regions() const { return placed; }
  /// The region of that name, null if there is none.
  const SmemRegion *find(std::string_view name) const;
  /// Dynamic shared memory of one block.
  int64_t totalBytes() const { return total; }

private:
  std::vector<SmemRegion> placed;
  int64_t alignment;
  int64_t total = 0;
};

} // namespace heddle
