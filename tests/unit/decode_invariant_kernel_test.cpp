// The decode_invariant kernel without a GPU, as paged_kernel_test.cpp has that of decode: results against the definition, and
// bits of a sequence alone, in batches of others, at other places in them, with other blocks at work first; and bits of its
// queries in calls of some of them. The kernel of decode does not have these.
#include "support/PagedCall.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct InvariantKernel {
  explicit InvariantKernel(const std::string &name, const std::string &changes = "",
                           const Kind &kind = kDecodeInvariant, DType dtype = DType::bf16,
                           std::optional<DType> cached = {}, int64_t headDim = 64, int64_t valueDim = 64)
      : kernel{name, headDim, valueDim,         dtype, changes, cached ? "sm_89" : "sm_80",
               kind, false,   Precision::exact, cached},
        pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  PagedCall callOf(PagedShape shape) const {
    shape.dtype = kernel.dtype, shape.cached = kernel.keys, shape.headDim = kernel.headDim,
    shape.valueDim = kernel.valueDim, shape.isInvariant = kernel.kind == kDecodeInvariant;
    return PagedCall(pattern, shape);
  }

  RoleTensors run(const PagedCall &call, int64_t processors, BlockOrder order = BlockOrder::ascending) const {
    RoleTensors results = call.resultsBefore(kernel.dtype);
    code->run(call.hostCall(results, processors), order);
    return results;
  }

  void check(const PagedShape &shape, int64_t processors) const {
    INFO(kernel.pattern << kernel.changes << ", page size " << shape.pageSize << ", " << processors << " processors");
    const PagedCall call = callOf(shape);
    checkPaged(call, 40, [&](const PagedCall &of, BlockOrder order) { return run(of, processors, order); });
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

PagedShape shapeOf(std::vector<int> rows, std::vector<int> keys, int64_t heads, int64_t kvHeads,
                   Keys lie = Keys::pages) {
  PagedShape shape;
  shape.rows = std::move(rows), shape.keys = std::move(keys);
  shape.heads = heads, shape.kvHeads = kvHeads, shape.isRagged = true;
  shape.lie = lie;
  return shape;
}

/// Sequences that batches are made of.
struct Pool {
  Pool(const InvariantKernel &kernel, PagedShape shape, int64_t processors)
      : kernel(kernel), shape(std::move(shape)), all(kernel.callOf(this->shape)), processors(processors) {}

  /// The bits of the sequences with these numbers, as one batch.
  std::vector<std::vector<std::byte>> bitsOf(const std::vector<size_t> &numbers,
                                             BlockOrder order = BlockOrder::ascending) const {
    PagedShape own = shape;
    own.rows.clear(), own.keys.clear();
    for (size_t number : numbers)
      own.rows.push_back(shape.rows[number]), own.keys.push_back(shape.keys[number]);
    PagedCall call = kernel.callOf(own);
    for (size_t i = 0; i < numbers.size(); ++i)
      call.take(i, all, numbers[i]);
    const RoleTensors results = kernel.run(call, processors, order);
    std::vector<std::vector<std::byte>> bits;
    for (size_t i = 0; i < numbers.size(); ++i)
      bits.push_back(call.bytesOf(results, i, 0, own.rows[i]));
    return bits;
  }

  /// How many sequences of these batches differ from what they are alone.
  int changed(const std::vector<std::vector<size_t>> &batches) const {
    std::vector<std::vector<std::byte>> alone;
    for (size_t number = 0; number < shape.rows.size(); ++number)
      alone.push_back(bitsOf({number}).front());
    int count = 0;
    for (const std::vector<size_t> &batch : batches)
      for (BlockOrder order : {BlockOrder::ascending, BlockOrder::descending}) {
        const auto bits = bitsOf(batch, order);
        for (size_t i = 0; i < batch.size(); ++i)
          count += bits[i] != alone[batch[i]];
      }
    return count;
  }

  const InvariantKernel &kernel;
  PagedShape shape;
  PagedCall all;
  int64_t processors;
};

const std::vector<std::vector<size_t>> kBatches = {{0, 1},       {1, 0, 2}, {3, 2, 1, 0},
                                                   {0, 0, 0, 0}, {2, 2, 3}, {4, 0, 4, 1}};

} // namespace

TEST_CASE("results are those of the definition") {
  const InvariantKernel kernel("causal");
  kernel.check(shapeOf({1}, {100}, 8, 1), 3);
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 4, 4), 4);
  kernel.check(shapeOf({2, 2}, {600, 257}, 16, 1), 2);
  kernel.check(shapeOf({1}, {2500}, 2, 1), 20); // 20 parts in three teams, one for each block
  kernel.check(shapeOf({1, 1}, {2500, 900}, 2, 1), 9);
  kernel.check(shapeOf({3, 0, 1, 40}, {50, 70, 200, 129}, 6, 2), 3);
  kernel.check(shapeOf({70, 1, 1}, {900, 700, 5}, 4, 2), 5);
  kernel.check(shapeOf({19}, {1100}, 4, 1), 12);
}

TEST_CASE("bits of a sequence do not depend on the batch, nor on its place") {
  const PagedShape shape = shapeOf({1, 1, 2, 1, 40}, {1500, 700, 1100, 90, 800}, 6, 2);
  const InvariantKernel kernel("causal"), other("causal", "", kDecode);
  for (int64_t processors : {1, 5, 11})
    CHECK(Pool(kernel, shape, processors).changed(kBatches) == 0);
  CHECK(Pool(other, shape, 11).changed(kBatches) > 0);
}

TEST_CASE("likewise more sequences than lanes of a warp, and equal ones") {
  const InvariantKernel kernel("causal");
  const Pool pool(kernel, shapeOf({1, 1}, {400, 1300}, 2, 1), 6);
  CHECK(pool.changed({std::vector<size_t>(40, 0), std::vector<size_t>(5, 1), std::vector<size_t>(11, 1)}) == 0);
  std::vector<size_t> mixed(34, 0);
  mixed[20] = 1;
  CHECK(pool.changed({mixed}) == 0);
}

TEST_CASE("likewise units of several teams of parts, of few rows and of many, which blocks have whole or in part") {
  const InvariantKernel kernel("causal");
  const PagedShape shape = shapeOf({1, 40}, {2500, 2300}, 2, 1);
  kernel.check(shape, 20);
  std::vector<size_t> both(44, 0);
  std::fill(both.begin() + 10, both.begin() + 30, 1);
  CHECK(Pool(kernel, shape, 20).changed({std::vector<size_t>(40, 0), std::vector<size_t>(40, 1), both, {1, 0, 1}}) ==
        0);
}

TEST_CASE("likewise keys in rows and tables behind each other, lists, other patterns and configurations") {
  for (Keys lie : {Keys::rows, Keys::indices}) {
    const InvariantKernel kernel("causal");
    CHECK(Pool(kernel, shapeOf({1, 3, 1, 9, 33}, {900, 640, 77, 300, 410}, 4, 2, lie), 7).changed(kBatches) == 0);
  }
  for (const char *name : {"streaming", "dilated", "sink"}) {
    const InvariantKernel kernel(name);
    const PagedShape shape = shapeOf({3, 1, 9, 1, 33}, {850, 577, 300, 64, 200}, 6, 2);
    kernel.check(shape, 3);
    CHECK(Pool(kernel, shape, 6).changed(kBatches) == 0);
  }
  InvariantKernel("trees").check(mixedDrafts(), 3);
  for (const char *changes : {",warps=8,stages=2,min_blocks=1,piece_tiles=1", ",chunk_n=32,stages=2,piece_tiles=4"}) {
    const InvariantKernel kernel("causal", changes);
    const PagedShape shape = shapeOf({70, 1, 9, 1, 150}, {900, 1700, 500, 5, 640}, 4, 2);
    kernel.check(shape, 5);
    CHECK(Pool(kernel, shape, 9).changed(kBatches) == 0);
  }
  const InvariantKernel kernel("causal", "", kDecodeInvariant, DType::bf16, DType::e4m3);
  CHECK(Pool(kernel, shapeOf({1, 1, 2, 1, 40}, {1500, 700, 1100, 90, 800}, 6, 2), 5).changed(kBatches) == 0);
}

namespace {

/// How many of the queries of a sequence, in calls of the last `counts` of those up to them, differ from what they are in a
/// call of all of them.
int changedByCount(const InvariantKernel &kernel, const PagedShape &shape, int64_t processors,
                   const std::vector<int> &counts, const std::vector<int> &ends) {
  const PagedCall all = kernel.callOf(shape);
  const RoleTensors together = kernel.run(all, processors);
  const int rows = shape.rows.front(), keys = shape.keys.front();
  int changed = 0;
  for (int count : counts)
    for (int end : ends) {
      if (end < count)
        continue;
      PagedShape of = shape;
      of.rows = {count}, of.keys = {keys - rows + end};
      PagedCall call = kernel.callOf(of);
      call.take(0, all, 0, end - count);
      changed += call.bytesOf(kernel.run(call, processors), 0, 0, count) != all.bytesOf(together, 0, end - count, end);
    }
  return changed;
}

} // namespace

TEST_CASE("bits of a query do not depend on how many its sequence brings") {
  const InvariantKernel kernel("causal"), other("causal", "", kDecode);
  const std::vector<int> counts = {1, 2, 8, 33};
  CHECK(changedByCount(kernel, shapeOf({128}, {1500}, 4, 1), 20, counts, {1, 40, 93, 128}) == 0);
  CHECK(changedByCount(kernel, shapeOf({33}, {2600}, 8, 1), 3, {1, 8}, {1, 20, 33}) == 0);
  CHECK(changedByCount(kernel, shapeOf({130}, {130}, 2, 2), 4, counts, {1, 2, 64, 129}) == 0);
  CHECK(changedByCount(other, shapeOf({128}, {1500}, 4, 1), 20, counts, {1, 40, 93, 128}) > 0);
  for (const char *name : {"sink", "softcap", "alibi", "sliding_window"})
    CHECK(changedByCount(InvariantKernel(name), shapeOf({40}, {700}, 4, 2), 7, {1, 8}, {1, 8, 40}) == 0);
  const InvariantKernel low("causal", "", kDecodeInvariant, DType::fp16, DType::e4m3);
  CHECK(changedByCount(low, shapeOf({40}, {700}, 4, 2), 7, {1, 8}, {1, 8, 40}) == 0);
}

TEST_CASE("nor on how many warps a block has, nor on stages") {
  const InvariantKernel four("causal"), eight("causal", ",warps=8,min_blocks=1,piece_tiles=1"),
      two("causal", ",stages=2,evict_tiles=0");
  for (const PagedShape &shape : {shapeOf({1, 1}, {1500, 40}, 4, 2), shapeOf({150}, {900}, 4, 1)}) {
    const PagedCall call = four.callOf(shape);
    const RoleTensors expected = four.run(call, 9);
    for (const InvariantKernel *kernel : {&eight, &two}) {
      const RoleTensors found = kernel->run(kernel->callOf(shape), 5);
      CHECK(found.out.data == expected.out.data);
      CHECK(found.lse.data == expected.lse.data);
    }
  }
}
