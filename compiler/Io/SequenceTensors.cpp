#include "compiler/Io/SequenceTensors.h"
#include "compiler/Io/RandomTensor.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace heddle {
namespace {

HostTensor integers(std::vector<int64_t> shape, const std::vector<int32_t> &values) {
  HostTensor tensor = HostTensor::zeros(DType::i32, std::move(shape));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

int32_t integerAt(const HostTensor &tensor, int64_t place) {
  int32_t value;
  std::memcpy(&value, tensor.data.data() + place * int64_t(sizeof value), sizeof value);
  return value;
}

std::vector<int32_t> pagesInRandomOrder(int64_t pages, uint64_t seed) {
  const RandomStream random(seed, "page_table");
  std::vector<int32_t> order(static_cast<size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[size_t(random.word(i) % i)]);
  return order;
}

// [sequences, more], with `tables` before them.
std::vector<int64_t> shapeOf(const PageSizes &sizes, std::vector<int64_t> more) {
  more.insert(more.begin(), sizes.sequences);
  if (sizes.tables > 1)
    more.insert(more.begin(), sizes.tables);
  return more;
}

int64_t listsOf(const PageSizes &sizes) { return sizes.tables * sizes.sequences; }

} // namespace

HostTensor randomPageTable(const PageSizes &sizes, uint64_t seed) {
  const std::vector<int32_t> order = pagesInRandomOrder(sizes.pages, seed);
  std::vector<int32_t> table(size_t(listsOf(sizes) * sizes.maxPages), 0);
  for (size_t i = 0; i < table.size() && !order.empty(); ++i)
    table[i] = order[i % order.size()];
  return integers(shapeOf(sizes, {sizes.maxPages}), table);
}

HostTensor randomLengths(const PageSizes &sizes, uint64_t seed) {
  const RandomStream random(seed, "seqused_k");
  const int64_t room =
      sizes.maxPages ? sizes.maxPages * sizes.pageSize : sizes.pageSize / std::max<int64_t>(sizes.sequences, 1);
  const uint64_t most = sizes.pages == 0 ? 0 : uint64_t(room);
  std::vector<int32_t> lengths(size_t(listsOf(sizes)));
  for (size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = int32_t(i == 0 ? most : random.word(i) % (most + 1));
  return integers(shapeOf(sizes, {}), lengths);
}

HostTensor randomLengthsBetween(const PageSizes &sizes, int64_t least, int64_t most, uint64_t seed) {
  const RandomStream random(seed, "seqused_k");
  std::vector<int32_t> lengths(size_t(listsOf(sizes)));
  for (size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = int32_t(least + int64_t(random.word(i) % uint64_t(most - least + 1)));
  return integers(shapeOf(sizes, {}), lengths);
}

HostTensor offsetsOf(const HostTensor &lengths) {
  std::vector<int32_t> offsets = {0};
  for (int64_t s = 0; s < lengths.elements(); ++s)
    offsets.push_back(offsets.back() + integerAt(lengths, s));
  return integers({lengths.elements() + 1}, offsets);
}

HostTensor evenOffsets(int64_t sequences, int64_t rows) {
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s <= sequences; ++s)
    offsets.push_back(int32_t(s == sequences ? rows : rows / sequences * s));
  return integers({sequences + 1}, offsets);
}

HostTensor pageTableOf(const PageSizes &sizes, const HostTensor &lengths, uint64_t seed) {
  const std::vector<int32_t> order = pagesInRandomOrder(sizes.pages, seed);
  std::vector<int32_t> table(size_t(listsOf(sizes) * sizes.maxPages), 0);
  size_t next = 0;
  for (int64_t list = 0; list < listsOf(sizes); ++list)
    for (int64_t number = 0; number * sizes.pageSize < integerAt(lengths, list); ++number)
      table[size_t(list * sizes.maxPages + number)] = order[next++ % order.size()];
  return integers(shapeOf(sizes, {sizes.maxPages}), table);
}

HostTensor shareFirstPages(const PageSizes &sizes, HostTensor &table, const HostTensor &lengths) {
  std::vector<int32_t> shared(size_t(sizes.sequences), 0);
  for (int64_t s = 1; s < sizes.sequences; ++s) {
    if (s % 3 == 0)
      continue;
    const int64_t pages = std::min(integerAt(lengths, s - 1), integerAt(lengths, s)) / sizes.pageSize;
    const int64_t rowBytes = sizes.maxPages * int64_t(sizeof(int32_t));
    std::memcpy(table.data.data() + s * rowBytes, table.data.data() + (s - 1) * rowBytes,
                size_t(pages) * sizeof(int32_t));
    shared[size_t(s)] = int32_t(pages * sizes.pageSize);
  }
  return integers({sizes.sequences}, shared);
}

ChainedTables chained(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths) {
  std::vector<int32_t> offsets = {0}, entries, last;
  for (int64_t s = 0; s < sizes.sequences; ++s) {
    const int64_t keys = integerAt(lengths, s), pages = (keys + sizes.pageSize - 1) / sizes.pageSize;
    for (int64_t n = 0; n < pages; ++n)
      entries.push_back(integerAt(table, s * sizes.maxPages + n));
    offsets.push_back(int32_t(entries.size()));
    last.push_back(int32_t(pages ? keys - (pages - 1) * sizes.pageSize : 0));
  }
  return {integers({sizes.sequences + 1}, offsets), integers({int64_t(entries.size())}, entries),
          integers({sizes.sequences}, last)};
}

Status checkPageTable(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths) {
  for (int64_t list = 0; list < listsOf(sizes); ++list)
    for (int64_t number = 0; number * sizes.pageSize < integerAt(lengths, list); ++number)
      if (const int64_t page = integerAt(table, list * sizes.maxPages + number); page < 0 || page >= sizes.pages)
        return badPage({list % sizes.sequences, sizes.tables > 1 ? list / sizes.sequences : -1}, number, page,
                       sizes.pages);
  return {};
}

Status checkChainedTables(const PageSizes &sizes, const HostTensor &offsets, const HostTensor &entries) {
  for (int64_t s = 0; s < sizes.sequences; ++s)
    for (int64_t n = integerAt(offsets, s); n < integerAt(offsets, s + 1); ++n)
      if (const int64_t page = integerAt(entries, n); page < 0 || page >= sizes.pages)
        return badPage({s}, n - integerAt(offsets, s), page, sizes.pages, "kv_indices");
  return {};
}

} // namespace heddle
