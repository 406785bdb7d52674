#pragma once

#include <cstdint>

namespace heddle::attn {

/// Numbers [begin, end) of rows or columns, counted from the first of the whole call.
struct IndexRange {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
  bool operator==(const IndexRange &other) const { return begin == other.begin && end == other.end; }
};

} // namespace heddle::attn
