//===- HostShard.cpp - a rank that computes on processors -----------------===//
#include "compiler/Library/HostShard.h"
#include "compiler/Library/HostCall.h"

#include <cstring>

namespace heddle {

template <class Use> static void forEachHead(const RowCopy &rows, Use use) {
  for (int64_t batch = 0; batch < rows.batches; ++batch)
    for (int64_t row = 0; row < rows.rows; ++row)
      for (int64_t head = 0; head < rows.heads; ++head) {
        auto at = [&](const RowPlace &place) { return place.at(row, head).base + batch * place.batchStride; };
        use(at(rows.to), at(rows.from));
      }
}

Status HostShard::clear(void *address, uint64_t bytes, Queue) {
  if (bytes)
    std::memset(address, 0, bytes);
  return {};
}

Status HostShard::copy(const RowCopy &copy, Queue) {
  forEachHead(copy, [&](char *to, const char *from) { std::memcpy(to, from, size_t(copy.to.headBytes)); });
  return {};
}

Status HostShard::add(const RowCopy &sum, Queue) {
  forEachHead(sum, [&](char *to, const char *from) {
    float *total = reinterpret_cast<float *>(to);
    const float *more = reinterpret_cast<const float *>(from);
    for (int64_t i = 0; i < sum.to.headBytes / int64_t(sizeof(float)); ++i)
      total[i] += more[i];
  });
  return {};
}

Status HostShard::launch(const KindText &kind, const heddle_attention_args &args) {
  return runOnHost(kind, *part, args, threads);
}

} // namespace heddle
