#include "compiler/Library/HostShard.h"
#include "compiler/Library/HostCall.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle {

template <class Use> static void forEachHead(const RowCopy &rows, Use use) {
  for (int64_t batch = 0; batch < rows.batches; ++batch)
    for (int64_t row = 0; row < rows.rows; ++row)
      for (int64_t head = 0; head < rows.heads; ++head) {
        auto at = [&](const RowPlace &place) { return place.at(row, head).base + batch * place.batchStride; };
        use(at(rows.to), at(rows.from), (batch * rows.heads + head) * rows.rows + row);
      }
}

Status HostShard::clear(void *address, uint64_t bytes, Queue) {
  if (bytes)
    std::memset(address, 0, bytes);
  return {};
}

Status HostShard::copy(const RowCopy &copy, Queue) {
  forEachHead(copy, [&](char *to, const char *from, int64_t) { std::memcpy(to, from, size_t(copy.to.headBytes)); });
  return {};
}

/// What of the sum is the first one's; the rest is the other's.
static float mergeLse(const RowSum &sum, int64_t place) {
  const float a = sum.lse[place], b = sum.lseFrom[place];
  const float most = std::max(a, b) == -INFINITY ? 0 : std::max(a, b);
  const float all = std::exp(a - most) + std::exp(b - most);
  sum.lseSum[place] = most + std::log(all);
  return all == 0 ? 1 : std::exp(a - most) / all;
}

Status HostShard::add(const RowSum &sum, Queue) {
  const RowCopy &rows = sum.rows;
  forEachHead(rows, [&](char *to, const char *from, int64_t place) {
    float *total = reinterpret_cast<float *>(to);
    const float *more = reinterpret_cast<const float *>(from);
    const float ofTotal = sum.lse ? mergeLse(sum, place) : 1, ofMore = sum.lse ? 1 - ofTotal : 1;
    for (int64_t i = 0; i < rows.to.headBytes / int64_t(sizeof(float)); ++i)
      total[i] = total[i] * ofTotal + more[i] * ofMore;
  });
  return {};
}

Status HostShard::launch(const KindText &kind, const heddle_attention_args &args, Queue) {
  return runOnHost(kind, *part, args, threads);
}

} // namespace heddle
