// The cascade kernel without a GPU, as paged_kernel_test.cpp has that of decode: sequences that share their first keys, groups
// of them and sequences beside them; results against the definition, and which tables are looked at.
#include "support/PagedCall.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct CascadeKernel {
  explicit CascadeKernel(const std::string &name, const std::string &changes = "", DType dtype = DType::bf16,
                         int64_t headDim = 64, int64_t valueDim = 64)
      : kernel{name, headDim, valueDim, dtype, changes, "sm_80", kCascade}, pattern(fileOf(kernel)),
        code(compiled(kernel, *pattern.file)) {}

  RoleTensors run(const PagedCall &call, int64_t processors, BlockOrder order = BlockOrder::ascending) const {
    RoleTensors results = call.resultsBefore(kernel.dtype);
    code->run(call.hostCall(results, processors), order);
    return results;
  }

  PagedCall callOf(PagedShape shape) const {
    shape.dtype = kernel.dtype, shape.headDim = kernel.headDim, shape.valueDim = kernel.valueDim;
    return PagedCall(pattern, shape);
  }

  void check(const PagedShape &shape, int64_t processors) const {
    INFO(kernel.pattern << kernel.changes << ", page size " << shape.pageSize << ", " << processors << " processors");
    const PagedCall call = callOf(shape);
    checkPaged(call, 60, [&](const PagedCall &of, BlockOrder order) { return run(of, processors, order); });
  }

  /// Whether keys [first, end) of a sequence are found in other tables than its own: the result is the same without
  /// these entries, which lie on pages' ends.
  bool readsElsewhere(const PagedShape &shape, int64_t sequence, int64_t first, int64_t end) const {
    PagedCall call = callOf(shape);
    const RoleTensors results = run(call, 3);
    for (int64_t key = first; key < end; key += shape.pageSize)
      call.inputs.pageTable.set(sequence * call.inputs.sizes.maxPages + key / shape.pageSize,
                                float(call.inputs.sizes.pages - 1)); // of no sequence
    const RoleTensors without = run(call, 3);
    return without.out.data == results.out.data && without.lse.data == results.lse.data;
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

PagedShape shapeOf(std::vector<int> rows, std::vector<int> keys, std::vector<int> shared, int64_t heads,
                   int64_t kvHeads, int64_t pageSize = 16) {
  PagedShape shape;
  shape.rows = std::move(rows), shape.keys = std::move(keys), shape.shared = std::move(shared);
  shape.heads = heads, shape.kvHeads = kvHeads, shape.pageSize = pageSize;
  return shape;
}

PagedShape ragged(PagedShape shape) {
  shape.isRagged = true;
  return shape;
}

PagedShape inIndices(PagedShape shape) {
  shape.lie = Keys::indices;
  return shape;
}

} // namespace

TEST_CASE("a group of all sequences, of few rows and of many; tokens and drafts") {
  const CascadeKernel kernel("causal");
  kernel.check(shapeOf({1, 1, 1}, {600, 400, 333}, {0, 320, 330}, 2, 1), 3);
  kernel.check(shapeOf({1, 1, 1, 1, 1, 1}, {500, 470, 460, 450, 470, 700}, {0, 448, 448, 440, 448, 450}, 8, 2, 1), 5);
  kernel.check(shapeOf({3, 3, 3, 3, 3}, {300, 290, 270, 260, 259}, {0, 256, 256, 256, 256}, 14, 2, 48), 4);
}

TEST_CASE("groups beside sequences that share nothing, too little, or have no or too many queries") {
  const CascadeKernel kernel("causal");
  kernel.check(ragged(shapeOf({1, 2, 1, 0, 5, 1, 40, 1, 3}, {300, 280, 90, 270, 400, 410, 330, 400, 200},
                              {0, 256, 70, 80, 128, 390, 320, 320, 200}, 8, 2)),
               5);
  kernel.check(shapeOf({2, 2, 2, 2, 2}, {700, 660, 90, 0, 1}, {0, 640, 0, 0, 0}, 4, 4), 3);
  kernel.check(shapeOf({1, 1}, {300, 300}, {0, 127}, 16, 1), 2); // no group
}

TEST_CASE("sequences whose neighbours share much more do not shorten what these share") {
  const CascadeKernel kernel("causal", ",check_pages=1");
  const PagedShape shape = shapeOf({1, 1, 1, 1, 1}, {700, 660, 650, 690, 650}, {0, 640, 128, 640, 640}, 4, 2);
  kernel.check(shape, 4);
  CHECK(kernel.readsElsewhere(shape, 1, 0, 640));
  CHECK(kernel.readsElsewhere(shape, 3, 0, 640));
  CHECK(kernel.readsElsewhere(shape, 4, 0, 640));
  CHECK_FALSE(kernel.readsElsewhere(shape, 1, 640, 656));
  CHECK_FALSE(kernel.readsElsewhere(shape, 2, 0, 64)); // the first of its group
}

TEST_CASE("windows, sinks in the softmax, all keys: tiles that all rows of a group keep") {
  const PagedShape shape = ragged(shapeOf({1, 3, 2, 1}, {500, 470, 480, 460}, {0, 448, 448, 448}, 6, 2));
  for (const char *name : {"streaming", "sink", "full", "alibi", "trees"}) {
    const CascadeKernel kernel(name);
    kernel.check(shape, 3);
  }
  CascadeKernel("alibi").check(shapeOf({2, 2, 2}, {300, 270, 290}, {0, 256, 256}, 6, 2), 3);
  // Nothing is left for the sequences themselves.
  CascadeKernel("full").check(shapeOf({1, 1, 1}, {256, 256, 256}, {0, 256, 256}, 4, 1), 3);
}

TEST_CASE("tables behind each other") {
  const CascadeKernel kernel("causal");
  kernel.check(inIndices(shapeOf({2, 2, 2, 2}, {300, 260, 0, 400}, {0, 256, 0, 0}, 4, 2)), 3);
  kernel.check(inIndices(ragged(shapeOf({1, 0, 2, 1}, {300, 20, 260, 400}, {0, 0, 0, 256}, 4, 2, 48))), 3);
}

TEST_CASE("more sequences than are looked at at a time, in groups that reach beyond") {
  std::vector<int> rows(150, 1), keys, shared;
  for (int i = 0; i < 150; ++i) {
    keys.push_back(130 + i % 7);
    shared.push_back(i % 50 == 0 ? 0 : 128);
  }
  CascadeKernel("causal").check(shapeOf(rows, keys, shared, 1, 1), 2);
}

TEST_CASE("types, head dims and configurations") {
  const PagedShape shape = shapeOf({2, 2}, {333, 290}, {0, 280}, 8, 2);
  CascadeKernel("causal", ",stages=2,min_blocks=1", DType::fp16, 128, 96).check(shape, 3);
  CascadeKernel("causal", ",chunk_n=32,stages=2,min_blocks=1,rescale_threshold=0,piece_tiles=1", DType::bf16, 32, 128)
      .check(shape, 2);
}
