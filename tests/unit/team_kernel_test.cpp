// Batch-invariant decode by clusters of blocks without a GPU, as cluster_kernel_test.cpp has the default: results against the
// definition, bits that are those of the kernel for other calls, and which calls launch it.
#include "support/ClusterCalls.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct TeamKernel : ClusterCalls {
  explicit TeamKernel(const std::string &name, const std::string &changes = "", DType dtype = DType::bf16,
                      int64_t headDim = 64, int64_t valueDim = 64, std::optional<DType> cached = {})
      : ClusterCalls(
            {name, headDim, valueDim, dtype, changes, "sm_90", kDecodeInvariant, false, Precision::exact, cached}) {
    Kernel portable = kernel; // of which no call has clusters
    portable.arch = cached ? "sm_89" : "sm_80";
    others = compiled(portable, *pattern.file);
    CHECK(others->plan().launches.size() == 1);
  }

  /// And the bits of the kernel for other calls.
  void check(const PagedShape &shape) const {
    ClusterCalls::check(shape);
    const PagedCall call = callOf(shape);
    const RoleTensors found = run(*code, call, BlockOrder::ascending);
    const RoleTensors expected = run(*others, call, BlockOrder::ascending);
    CHECK(found.out.data == expected.out.data);
    CHECK(found.lse.data == expected.lse.data);
  }

  std::unique_ptr<HostKernel> others;
};

} // namespace

TEST_CASE("teams: lengths, pages of every size, groups of heads; blocks without keys, rings that go round") {
  const TeamKernel kernel("causal");
  kernel.check(shapeOf({1}, {100}, 8, 1, 16));
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 4, 4, 1));
  kernel.check(shapeOf({2, 2}, {600, 257}, 8, 2, 256));
  kernel.check(shapeOf({1}, {1030}, 2, 1, 48));   // two clusters, of which one has one part
  kernel.check(shapeOf({1}, {9100}, 4, 1, 64));   // nine
  kernel.check(shapeOf({1}, {2600}, 28, 14, 64)); // one has all three teams
}

TEST_CASE("teams: several of each cluster, parts of several sizes") {
  const TeamKernel kernel("causal");
  kernel.check(shapeOf({1}, {5000}, 7, 7, 64));          // of five two and three
  kernel.check(shapeOf({1, 1}, {2100, 8100}, 5, 5, 64)); // one has all eight
  kernel.check(shapeOf({1}, {20000}, 2, 1, 64));         // parts of 512 keys from 16k on
}

TEST_CASE("teams: windows that begin within a team") {
  const TeamKernel kernel("sliding_window");
  kernel.check(shapeOf({2, 1}, {1450, 900}, 2, 1, 16, true));
  kernel.check(shapeOf({1}, {2600}, 14, 14, 16));
}

TEST_CASE("teams: ragged queries, some without rows; lists of kv heads, keys in rows, tables behind each other") {
  const TeamKernel kernel("causal");
  kernel.check(shapeOf({1, 0, 3}, {50, 70, 1200}, 4, 2, 16, true));
  kernel.check(shapeOf({1}, {1500}, 8, 2, 16, false, Keys::lists));
  kernel.check(shapeOf({1, 1}, {1200, 77}, 8, 2, 0, false, Keys::usedRows));
  kernel.check(shapeOf({1, 1, 1}, {0, 1, 300}, 8, 2, 48, false, Keys::indices));
  TeamKernel("causal", ",check_pages=1").check(shapeOf({1, 1}, {600, 33}, 8, 2, 16));
}

TEST_CASE("teams: patterns of two ranges, scores, sinks; types and head dims") {
  for (const char *name : {"streaming", "softcap", "sink", "trees"})
    TeamKernel(name).check(shapeOf({2, 1}, {1150, 77}, 4, 2, 16, true));
  TeamKernel("causal", "", DType::fp16, 128, 96).check(shapeOf({2, 2}, {333, 90}, 8, 2, 16));
  TeamKernel("causal", ",rescale_threshold=0", DType::bf16, 128, 32).check(shapeOf({1}, {1333}, 8, 2, 16));
  TeamKernel("causal", "", DType::bf16, 128, 64, DType::e4m3).check(shapeOf({1, 1}, {2100, 33}, 8, 2, 16));
}

TEST_CASE("clusters compute batch-invariant calls of few units, rows and keys by configurations with their parts") {
  TeamKernel("causal").checkServed();
  CHECK(TeamKernel("causal", ",warps=8,min_blocks=1,piece_tiles=1").areOfClusters(shapeOf({1}, {100}, 8, 1, 16)));
  const Kernel wide = {"causal", 64, 64, DType::bf16, ",chunk_n=32,stages=2", "sm_90", kDecodeInvariant};
  CHECK(compiled(wide, *Compiled(fileOf(wide)).file)->plan().launches.size() == 1); // other slices
}
