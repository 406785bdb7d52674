// The decode kernel without a GPU: its whole text on the host, a thread at a time, blocks one after the other; results
// against the definition. Few processors, so that pieces end within units and units within pieces.
#include "support/PagedCall.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

struct PagedKernel {
  explicit PagedKernel(const std::string &name, const std::string &changes = "", DType dtype = DType::bf16,
                       int64_t headDim = 64, int64_t valueDim = 64, std::optional<DType> cached = {})
      : kernel{name,    headDim, valueDim,         dtype, changes, cached ? "sm_89" : "sm_80",
               kDecode, false,   Precision::exact, cached},
        pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  RoleTensors run(const PagedCall &call, int64_t processors, BlockOrder order = BlockOrder::ascending) const {
    RoleTensors results = call.resultsBefore(kernel.dtype);
    code->run(call.hostCall(results, processors), order);
    return results;
  }

  void check(PagedShape shape, int64_t processors) const {
    shape.dtype = kernel.dtype, shape.cached = kernel.keys, shape.headDim = kernel.headDim,
    shape.valueDim = kernel.valueDim;
    INFO(kernel.pattern << kernel.changes << ", page size " << shape.pageSize << ", " << processors << " processors");
    const PagedCall call(pattern, shape);
    checkPaged(call, 40, [&](const PagedCall &of, BlockOrder order) { return run(of, processors, order); });
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

} // namespace

TEST_CASE("lengths, pages of every size, groups of heads; units that one block has, that two share, that many share") {
  const PagedKernel kernel("causal");
  kernel.check(shapeOf({1}, {100}, 8, 1, 16), 3);
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 4, 4, 1), 4);
  kernel.check(shapeOf({2, 2}, {600, 257}, 16, 1, 256), 2);
  kernel.check(shapeOf({1}, {1500}, 2, 1, 48), 20); // 12 blocks in two steps
  kernel.check(shapeOf({1}, {9100}, 2, 1, 64), 70); // 72 blocks: more teams than are joined at once
}

TEST_CASE("where units are equal blocks have whole ones, if little is lost by it: bits are those of one processor") {
  const PagedKernel kernel("causal");
  const auto isSplit = [&kernel](int sequences, int64_t processors) {
    PagedShape shape =
        shapeOf(std::vector<int>(size_t(sequences), 1), std::vector<int>(size_t(sequences), 500), 16, 1, 16);
    const PagedCall call(kernel.pattern, shape);
    const RoleTensors whole = kernel.run(call, 1), dealt = kernel.run(call, processors);
    return whole.lse.data != dealt.lse.data || whole.out.data != dealt.out.data;
  };
  CHECK(!isSplit(11, 3)); // 2 units of 8 tiles for each of 6 blocks; an even share is 15 tiles
  CHECK(!isSplit(6, 3));
  CHECK(!isSplit(44, 3)); // more than lanes of a warp
  CHECK(isSplit(5, 4));   // 8 tiles were too many beside 5
}

TEST_CASE("equal units that several blocks share, the last with fewer tiles") {
  const PagedKernel kernel("causal");
  kernel.check(shapeOf({1, 1}, {1090, 1090}, 4, 2, 16), 18); // 18 tiles in 9 pieces of each
  kernel.check(shapeOf({1}, {1030}, 8, 4, 64), 18);          // 17 tiles, the last piece has one
}

TEST_CASE("ragged queries, 1 to 128 of them; sequences without queries") {
  const PagedKernel kernel("causal");
  kernel.check(shapeOf({3, 0, 1, 40}, {50, 70, 200, 129}, 6, 2, 16, true), 3);
  kernel.check(shapeOf({128}, {140}, 2, 1, 16), 2);
  kernel.check(shapeOf({19}, {1100}, 4, 1, 16),
               12); // 76 rows: both units are shared, the last row group of one is empty
}

TEST_CASE("units of many rows beside those of few: their tiles count more; eight warps have units twice as tall") {
  for (const char *changes : {"", ",warps=8,stages=2,min_blocks=1,piece_tiles=1"}) {
    const PagedKernel kernel("causal", changes);
    kernel.check(shapeOf({70, 1, 1}, {900, 700, 5}, 4, 2, 16, true), 5);
    kernel.check(shapeOf({1, 40}, {1500, 1000}, 4, 1, 16, true), 12);
    kernel.check(shapeOf({1, 1}, {300, 33}, 8, 2, 16), 3);
  }
  PagedKernel("streaming", ",warps=8,stages=2,min_blocks=1,piece_tiles=2,evict_tiles=0", DType::bf16, 64, 32)
      .check(shapeOf({33, 1}, {850, 77}, 6, 2, 16, true), 3);
}

TEST_CASE("a list of pages for each kv head, whose positions count along it") {
  const PagedKernel kernel("causal");
  kernel.check(shapeOf({1}, {1500}, 8, 2, 16, false, Keys::lists), 5);
  kernel.check(shapeOf({1, 0, 40, 3}, {300, 20, 129, 1}, 6, 3, 48, true, Keys::lists), 3);
  kernel.check(shapeOf({1}, {90}, 16, 1, 16, false, Keys::lists), 2);
  PagedKernel("dilated").check(shapeOf({2, 2}, {200, 33}, 4, 2, 16, false, Keys::lists), 3); // heads are not packed
}

TEST_CASE("keys in rows, of which all count or the first ones") {
  const PagedKernel kernel("causal", ",check_pages=1");
  for (Keys lie : {Keys::rows, Keys::usedRows}) {
    kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 16, 2, 0, false, lie), 4);
    kernel.check(shapeOf({3, 0, 1, 40}, {50, 70, 700, 129}, 6, 2, 0, true, lie), 3);
  }
  PagedKernel("streaming").check(shapeOf({3, 1}, {150, 77}, 6, 2, 0, true, Keys::rows), 3);
}

TEST_CASE("tables behind each other") {
  const PagedKernel kernel("causal", ",check_pages=1");
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 16, 2, 16, false, Keys::indices), 4);
  kernel.check(shapeOf({3, 0, 1, 40}, {50, 70, 700, 129}, 6, 2, 48, true, Keys::indices), 3);
}

TEST_CASE("more sequences than a block has threads") {
  std::vector<int> rows(150, 1), keys;
  for (int i = 0; i < 150; ++i)
    keys.push_back(i * 7 % 40);
  PagedKernel("causal").check(shapeOf(rows, keys, 1, 1, 16), 2);
}

TEST_CASE("patterns: two ranges, branches, rates by head, lists, scores, sinks, trees") {
  std::vector<std::string> names = {"streaming", "dilated", "sink"};
  if (std::getenv("HEDDLE_TEST_ALL"))
    names.insert(names.end(), {"bigbird", "softcap", "tree_decode", "longnet", "random_blocks", "alibi"});
  for (const std::string &name : names)
    PagedKernel(name).check(shapeOf({3, 1, 9}, {150, 77, 300}, 6, 2, 16, true), 3);
}

TEST_CASE(
    "a tree of drafts for each sequence, beside single tokens and pieces of prompts; numbers that none can have") {
  const PagedKernel kernel("trees");
  kernel.check(mixedDrafts(), 3);
  kernel.check(shapeOf({5, 5, 5, 5}, {90, 5, 400, 33}, 4, 2, 16), 4);
  PagedShape most = mixedDrafts(), beyond = mixedDrafts();
  most.drafts = {20, 0, 20, 0, 20}, beyond.drafts = {INT32_MAX, -1, 21, -7, 1000}; // trees have 20 tokens
  const RoleTensors expected = kernel.run(PagedCall(kernel.pattern, most), 3),
                    cut = kernel.run(PagedCall(kernel.pattern, beyond), 3);
  CHECK(cut.out.data == expected.out.data);
  CHECK(cut.lse.data == expected.lse.data);
}

TEST_CASE("types, head dims and configurations") {
  const PagedShape shape = shapeOf({2, 2}, {333, 90}, 8, 2, 16);
  PagedKernel("causal", ",stages=2,min_blocks=1", DType::fp16, 128, 96).check(shape, 3);
  PagedKernel("causal", ",chunk_n=32,stages=2,min_blocks=1,rescale_threshold=0,piece_tiles=1,check_pages=1",
              DType::bf16, 32, 128)
      .check(shape, 2);
}

TEST_CASE("k and v of e4m3 beside q of bf16 and fp16, with a scale for each sequence and kv head") {
  const PagedKernel kernel("causal", ",chunk_n=16", DType::bf16, 64, 64, DType::e4m3);
  kernel.check(shapeOf({1, 2, 40}, {100, 300, 129}, 8, 2, 16, true), 3);
  kernel.check(shapeOf({3, 1}, {150, 77}, 6, 2, 0, true, Keys::rows), 3);
  kernel.check(shapeOf({1, 1}, {300, 33}, 8, 2, 16, false, Keys::lists), 2);
  PagedKernel("softcap", ",stages=2,min_blocks=1", DType::fp16, 128, 64, DType::e4m3)
      .check(shapeOf({2, 2}, {333, 90}, 8, 2, 48), 3);
}

TEST_CASE(
    "rows of bf16 that fp16 has no range for, beside keys of e4m3; a NaN among keys is in the rows that keep it") {
  const PagedKernel kernel("causal", "", DType::bf16, 64, 128, DType::e4m3);
  PagedShape shape = shapeOf({2, 1}, {90, 40}, 4, 2, 16);
  shape.dtype = DType::bf16, shape.cached = DType::e4m3, shape.headDim = 64, shape.valueDim = 128;
  PagedCall call(kernel.pattern, shape);
  HostTensor &q = call.inputs.q;
  for (int64_t i = 0; i < q.elements(); ++i)
    q.set(i, float(q.get(i)) * (i / 64 % 2 ? 0x1p27f : 0x1p-40f));
  call.scale = 0x1p-27;
  const oracle::KindReport report = oracle::verifyCall(call.kindCall(), kernel.run(call, 3), 40);
  for (const oracle::RoleReport &role : report.roles)
    CHECK(role.maxError <= role.allowedError);

  const int64_t place = int64_t(call.inputs.pageTable.get(0)) * 16 + 3; // key 3 of sequence 0
  call.inputs.v.set((place * 2 + 1) * 128 + 5, NAN);                    // of kv head 1
  const RoleTensors results = kernel.run(call, 3);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t head = 0; head < 4; ++head)
      CHECK(std::isnan(results.out.get((row * 4 + head) * 128 + 5)) == (head >= 2));
}
