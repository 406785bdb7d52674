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

} // namespace

HostTensor randomPageTable(const PageSizes &sizes, uint64_t seed) {
  const std::vector<int32_t> order = pagesInRandomOrder(sizes.pages, seed);
  std::vector<int32_t> table(size_t(sizes.sequences * sizes.maxPages), 0);
  for (size_t i = 0; i < table.size() && !order.empty(); ++i)
    table[i] = order[i % order.size()];
  return integers({sizes.sequences, sizes.maxPages}, table);
}

HostTensor randomLengths(const PageSizes &sizes, uint64_t seed) {
  const RandomStream random(seed, "seqused_k");
  const uint64_t most = sizes.pages == 0 ? 0 : uint64_t(sizes.maxPages * sizes.pageSize);
  std::vector<int32_t> lengths(size_t(sizes.sequences));
  for (size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = int32_t(i == 0 ? most : random.word(i) % (most + 1));
  return integers({sizes.sequences}, lengths);
}

HostTensor randomLengthsBetween(int64_t sequences, int64_t least, int64_t most, uint64_t seed) {
  const RandomStream random(seed, "seqused_k");
  std::vector<int32_t> lengths(static_cast<size_t>(sequences));
  for (size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = int32_t(least + int64_t(random.word(i) % uint64_t(most - least + 1)));
  return integers({sequences}, lengths);
}

HostTensor pageTableOf(const PageSizes &sizes, const HostTensor &lengths, uint64_t seed) {
  const std::vector<int32_t> order = pagesInRandomOrder(sizes.pages, seed);
  std::vector<int32_t> table(size_t(sizes.sequences * sizes.maxPages), 0);
  size_t next = 0;
  for (int64_t s = 0; s < sizes.sequences; ++s)
    for (int64_t number = 0; number * sizes.pageSize < integerAt(lengths, s); ++number)
      table[size_t(s * sizes.maxPages + number)] = order[next++ % order.size()];
  return integers({sizes.sequences, sizes.maxPages}, table);
}

Status checkSequenceTensors(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths) {
  const int64_t most = sizes.maxPages * sizes.pageSize;
  for (int64_t s = 0; s < sizes.sequences; ++s) {
    const int64_t length = integerAt(lengths, s);
    if (length < 0 || length > most)
      return badLength(s, length, sizes.maxPages, sizes.pageSize);
    for (int64_t number = 0; number * sizes.pageSize < length; ++number)
      if (const int64_t page = integerAt(table, s * sizes.maxPages + number); page < 0 || page >= sizes.pages)
        return badPage(s, number, page, sizes.pages);
  }
  return {};
}

} // namespace heddle
