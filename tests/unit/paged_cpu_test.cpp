// Sequences whose keys lie in pages or in rows, on the processors: each has the bits of a dense call on the same keys, and is what
// the definition says; what lengths and tables must be.
#include "support/PagedCall.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

Compiled compiledPattern(const std::string &name) {
  Kernel kernel;
  kernel.pattern = name;
  return Compiled(fileOf(kernel));
}

void check(const Compiled &pattern, const PagedShape &shape) {
  INFO("page size " << shape.pageSize << ", " << shape.heads << " heads on " << shape.kvHeads);
  const PagedCall call(pattern, shape);
  const RoleTensors results = call.onCpu();
  for (size_t sequence = 0; sequence < shape.rows.size(); ++sequence)
    if (shape.rows[sequence] > 0 && shape.lie != Keys::lists)
      call.checkAgainst(results, sequence, call.dense(sequence));
  const oracle::KindReport report = oracle::verifyCall(call.kindCall(), results, 30);
  REQUIRE(report.roles.size() == 2);
  for (const oracle::RoleReport &role : report.roles)
    CHECK(role.maxError <= role.allowedError);
}

PagedShape ragged(PagedShape shape) {
  shape.isRagged = true;
  return shape;
}

PagedShape with(PagedShape shape, Keys lie) {
  shape.lie = lie;
  return shape;
}

} // namespace

TEST_CASE("a list of pages for each kv head: lengths of its own, positions along the list") {
  for (const char *name : {"causal", "full", "dilated", "sink"}) {
    INFO(name);
    const Compiled pattern = compiledPattern(name);
    check(pattern, with(shapeOf({2, 2, 2}, {300, 1, 0}, 6, 3, 16), Keys::lists));
    check(pattern, with(ragged(shapeOf({1, 0, 70, 5}, {90, 20, 170, 64}, 16, 2, 48)), Keys::lists));
  }
}

TEST_CASE("lists that are alike are one table for all heads, bit by bit") {
  const Compiled pattern = compiledPattern("streaming");
  PagedCall call(pattern, ragged(shapeOf({1, 9, 5}, {200, 77, 64}, 8, 4, 16)));
  const RoleTensors one = call.onCpu();
  for (Role role : {Role::pageTable, Role::sequsedK}) {
    HostTensor &tensor = call.inputs.of(role);
    const std::vector<std::byte> own = tensor.data;
    for (int table = 1; table < 4; ++table)
      tensor.data.insert(tensor.data.end(), own.begin(), own.end());
    tensor.shape.insert(tensor.shape.begin(), 4);
  }
  call.inputs.sizes.tables = 4;
  const RoleTensors lists = call.onCpu();
  CHECK(lists.out.data == one.out.data);
  CHECK(lists.lse.data == one.lse.data);
}

TEST_CASE("tables behind each other; keys that sequences share change nothing") {
  PagedShape shape = with(ragged(shapeOf({1, 70, 0, 5}, {200, 170, 0, 64}, 4, 2, 16)), Keys::indices);
  check(compiledPattern("streaming"), shape);
  shape.shared = {0, 165, 0, 0};
  check(compiledPattern("streaming"), shape);
  check(compiledPattern("causal"), with(shape, Keys::pages));
}

TEST_CASE("keys in rows, of which all count or the first ones") {
  for (Keys lie : {Keys::rows, Keys::usedRows}) {
    check(compiledPattern("causal"), with(shapeOf({1, 1, 1, 1}, {300, 0, 1, 130}, 16, 1, 0), lie));
    check(compiledPattern("streaming"), with(ragged(shapeOf({1, 70, 0, 5}, {200, 170, 30, 64}, 4, 2, 0)), lie));
  }
}

TEST_CASE("pages of every size, in random order; lengths that end within a page, one key, none") {
  const Compiled pattern = compiledPattern("causal");
  for (int64_t pageSize : {1, 16, 48, 256})
    check(pattern, shapeOf({1, 1, 1, 1}, {300, 0, 1, 130}, 4, 2, pageSize));
}

TEST_CASE("groups of 1 to 16 heads, 1 to 128 queries") {
  const Compiled pattern = compiledPattern("causal");
  for (int64_t kvHeads : {16, 4, 1})
    check(pattern, shapeOf({2}, {90}, 16, kvHeads, 16));
  check(pattern, shapeOf({128, 128}, {150, 100}, 2, 1, 16));
}

TEST_CASE("ragged queries: a token, a piece of a prompt, nothing, drafts") {
  check(compiledPattern("causal"), ragged(shapeOf({1, 70, 0, 5}, {200, 170, 30, 64}, 4, 2, 16)));
}

TEST_CASE("patterns: positions are those of each sequence") {
  for (const char *name : {"streaming", "dilated", "sink", "tree_decode"}) {
    INFO(name);
    check(compiledPattern(name), ragged(shapeOf({3, 1, 9}, {90, 77, 33}, 6, 2, 16)));
  }
  if (std::getenv("HEDDLE_TEST_ALL"))
    for (const char *name : {"full", "sliding_window", "bigbird", "alibi", "softcap", "prefix_lm", "longnet",
                             "random_blocks", "sparse_fixed"}) {
      INFO(name);
      check(compiledPattern(name), ragged(shapeOf({3, 1, 20}, {150, 77, 90}, 6, 2, 16)));
    }
}

TEST_CASE("a tree of drafts for each sequence, beside single tokens and pieces of prompts") {
  check(compiledPattern("trees"), mixedDrafts());
  check(compiledPattern("trees"), with(mixedDrafts(), Keys::usedRows));
  check(compiledPattern("trees"), shapeOf({5, 5, 5, 5}, {90, 5, 40, 33}, 4, 2, 16));
}

TEST_CASE("types and head dims") {
  for (DType dtype : {DType::fp16, DType::fp32}) {
    PagedShape shape = shapeOf({2, 2}, {70, 33}, 4, 1, 16);
    shape.dtype = dtype, shape.headDim = 128, shape.valueDim = 32;
    check(compiledPattern("causal"), shape);
  }
}

TEST_CASE("entries of pages that the pattern keeps nothing of are not looked at, others must name pages") {
  const Compiled pattern = compiledPattern("sliding_window");
  PagedCall call(pattern, shapeOf({1}, {300}, 1, 1, 16));
  RoleTensors results = call.resultsBefore(DType::bf16);
  const std::vector<std::byte> before = call.inputs.pageTable.data;
  const auto run = [&](int64_t entry, int32_t page) {
    call.inputs.pageTable.data = before;
    std::memcpy(call.inputs.pageTable.data.data() + 4 * entry, &page, sizeof page);
    return cpuFunctionOf(KindBase::decode)(call.cpuCall(results));
  };
  CHECK(run(0, -7).isOk()); // the window has 4 keys
  const std::string said = run(18, 21).message();
  CHECK(said == "attention arguments: page_table: sequence 0, page 18: expected 0 to 20, got 21");
  CHECK(run(18, -1).code() == StatusCode::invalidArgument);
}

TEST_CASE("of lists the kv head is named, too") {
  const Compiled pattern = compiledPattern("causal");
  PagedCall call(pattern, with(shapeOf({1, 1}, {300, 40}, 4, 2, 16), Keys::lists));
  RoleTensors results = call.resultsBefore(DType::bf16);
  const int32_t page = -1;
  const int64_t entry = 3 * call.inputs.sizes.maxPages + 1; // of kv head 1, sequence 1, which has 20 keys
  std::memcpy(call.inputs.pageTable.data.data() + 4 * entry, &page, sizeof page);
  CHECK(cpuFunctionOf(KindBase::decode)(call.cpuCall(results)).message() ==
        "attention arguments: page_table: kv head 1, sequence 1, page 1: expected 0 to 35, got -1");
}

TEST_CASE("k and v of e4m3 beside another q, with a scale for each sequence and kv head") {
  const Compiled pattern = compiledPattern("causal");
  PagedShape pages = ragged(shapeOf({1, 0, 70, 5}, {90, 20, 170, 64}, 6, 3, 16)),
             rows = shapeOf({3, 3}, {100, 40}, 4, 2, 0);
  pages.cached = rows.cached = DType::e4m3;
  rows.dtype = DType::fp16;
  check(pattern, pages);
  check(pattern, with(pages, Keys::lists));
  check(pattern, with(rows, Keys::rows));
}
