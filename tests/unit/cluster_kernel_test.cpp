// Decode by clusters of blocks without a GPU, as paged_kernel_test.cpp has the kernel beside it: results against the
// definition, whatever the order of blocks, and which calls launch it.
#include "support/ClusterCalls.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct ClusterKernel : ClusterCalls {
  explicit ClusterKernel(const std::string &name, const std::string &changes = "", DType dtype = DType::bf16,
                         int64_t headDim = 64, int64_t valueDim = 64, std::optional<DType> cached = {})
      : ClusterCalls({name, headDim, valueDim, dtype, changes, "sm_90", kDecode, false, Precision::exact, cached}) {}
};

} // namespace

TEST_CASE("clusters: lengths, pages of every size, groups of heads; blocks without keys, rings that go round") {
  const ClusterKernel kernel("causal");
  kernel.check(shapeOf({1}, {100}, 8, 1, 16));
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 4, 4, 1));
  kernel.check(shapeOf({2, 2}, {600, 257}, 8, 2, 256));
  kernel.check(shapeOf({1}, {1030}, 2, 1, 48));   // two clusters
  kernel.check(shapeOf({1}, {9100}, 4, 1, 64));   // nine
  kernel.check(shapeOf({1}, {2600}, 28, 14, 64)); // one has all that comes
}

TEST_CASE("clusters: ragged queries, some without rows; lists of kv heads, keys in rows, tables behind each other") {
  const ClusterKernel kernel("causal");
  kernel.check(shapeOf({1, 0, 3}, {50, 70, 1200}, 4, 2, 16, true));
  kernel.check(shapeOf({1}, {1500}, 8, 2, 16, false, Keys::lists));
  kernel.check(shapeOf({1, 1}, {1200, 77}, 8, 2, 0, false, Keys::usedRows));
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 8, 2, 48, false, Keys::indices));
  ClusterKernel("causal", ",check_pages=1").check(shapeOf({1, 1}, {600, 33}, 8, 2, 16));
}

TEST_CASE("clusters: units of unlike lengths, a long one among short ones, lists") {
  const ClusterKernel kernel("causal");
  kernel.check(shapeOf({1, 1, 1, 0, 1}, {40, 4800, 0, 5, 700}, 4, 2, 16, true));
  kernel.check(shapeOf({1, 1}, {5000, 10}, 8, 4, 64, false, Keys::lists));
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 4000}, 4, 4, 48, false, Keys::indices));
  ClusterKernel("sink").check(shapeOf({1, 1, 1}, {6200, 77, 1}, 4, 4, 16));
}

TEST_CASE("clusters: patterns of two ranges, scores, sinks; types and head dims") {
  for (const char *name : {"streaming", "softcap", "sink", "trees"})
    ClusterKernel(name).check(shapeOf({2, 1}, {1150, 77}, 4, 2, 16, true));
  ClusterKernel("causal", "", DType::fp16, 128, 96).check(shapeOf({2, 2}, {333, 90}, 8, 2, 16));
  ClusterKernel("causal", ",rescale_threshold=0", DType::bf16, 32, 128).check(shapeOf({1}, {1333}, 8, 2, 16));
  ClusterKernel("causal", "", DType::bf16, 128, 64, DType::e4m3).check(shapeOf({1, 1}, {2100, 33}, 8, 2, 16));
}

TEST_CASE("clusters compute calls of few units, rows and keys; blocks of their own all others") {
  ClusterKernel("causal").checkServed();
}
