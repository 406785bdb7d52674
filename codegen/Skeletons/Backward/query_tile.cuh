// A query tile that a key tile visits.
#pragma once

namespace heddle {

struct QueryTile {
  int32_t firstRow; // of q; negative: there is none
  int32_t flags;    // 1: masked; the branch above
  int32_t head;

  DEV bool isEnd() const { return firstRow < 0; }
  DEV bool isMasked() const { return flags & 1; }
  DEV int32_t branch() const { return flags >> 1; }
};

} // namespace heddle
