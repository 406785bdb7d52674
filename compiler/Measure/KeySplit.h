// Owns the carry between launches: the first writes fp32 results of the keys before the cut, the second continues the
// softmax over the others. What a ring of GPUs or a paged cache does with every piece of keys that arrives.
#pragma once

#include "runtime/Device/Kernel.h"

namespace heddle {

/// The same call over keys [begin, end) only, at their own positions. 0 <= begin <= end <= seqlen_k.
AttentionArgs overKeys(AttentionArgs args, int64_t begin, int64_t end);

/// Owns what passes between the launches. Movable. Not thread safe.
class KeySplit {
public:
  /// `first` is of kind forward_fp32_out, `second` writes what `args` say; the pattern's query origin does not depend
  /// on the number of keys. `args` has the workspace of `second`; what it refers to must outlive this object.
  static Result<KeySplit> create(const Kernel &first, const Kernel &second, const AttentionArgs &args, int64_t cut);

  /// Both launches, one behind the other on the stream.
  Status launch(cuda::Stream stream) const;

private:
  KeySplit(DeviceBuffer out, DeviceBuffer lse, DeviceBuffer workspace, PreparedLaunch first, PreparedLaunch second)
      : out(std::move(out)), lse(std::move(lse)), workspace(std::move(workspace)), first(std::move(first)),
        second(std::move(second)) {}

  DeviceBuffer out, lse, workspace; ///< of the first launch
  PreparedLaunch first, second;
};

} // namespace heddle
