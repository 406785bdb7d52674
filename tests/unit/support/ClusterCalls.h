// Owns what tests of decode by clusters share: a kernel that has one for calls of few units beside the one for others, compiled for the
// host, and which of the two a call launches.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_CLUSTERCALLS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_CLUSTERCALLS_H

#include "PagedCall.h"

namespace heddle::test {

struct ClusterCalls {
  static constexpr int64_t kProcessors = 64; // 14 clusters

  explicit ClusterCalls(const Kernel &kernel)
      : kernel(kernel), pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  PagedCall callOf(PagedShape shape) const {
    shape.dtype = kernel.dtype, shape.cached = kernel.keys, shape.headDim = kernel.headDim,
    shape.valueDim = kernel.valueDim, shape.isInvariant = kernel.kind.base == KindBase::decodeInvariant;
    return PagedCall(pattern, shape);
  }

  /// Blocks of the kernel for other calls, and of that of clusters.
  std::pair<int64_t, int64_t> blocksOf(const PagedShape &shape) const {
    const PagedCall call = callOf(shape);
    RoleTensors results = call.resultsBefore(kernel.dtype);
    const HostCall host = call.hostCall(results, kProcessors);
    const std::vector<KernelLaunch> &launches = code->plan().launches;
    REQUIRE(launches.size() == 2);
    const auto blocks = [&host](const KernelLaunch &launch) {
      const Result<LaunchGeometry> geometry = evaluateGeometry(launch, host.symbols);
      REQUIRE(geometry.isOk());
      return geometry->grid[0] * geometry->grid[1] * geometry->grid[2];
    };
    return {blocks(launches[0]), blocks(launches[1])};
  }
  bool areOfClusters(const PagedShape &shape) const {
    const auto [others, clusters] = blocksOf(shape);
    CHECK((others == 0) != (clusters == 0));
    return clusters > 0;
  }

  /// Which calls are of few units, rows and keys.
  void checkServed() const {
    CHECK(areOfClusters(shapeOf({1}, {100}, 8, 1, 16)));
    CHECK(!areOfClusters(shapeOf({1}, {100}, 9, 1, 16)));                                        // rows
    CHECK(!areOfClusters(shapeOf({3}, {100}, 3, 1, 16)));                                        // of several queries
    CHECK(areOfClusters(shapeOf(std::vector<int>(14, 1), std::vector<int>(14, 20), 1, 1, 16)));  // units
    CHECK(!areOfClusters(shapeOf(std::vector<int>(15, 1), std::vector<int>(15, 20), 1, 1, 16))); // one too many
    CHECK(areOfClusters(shapeOf({1}, {140000}, 1, 1, 256)));                                     // of one list
    CHECK(areOfClusters(shapeOf({1}, {520000}, 8, 8, 256)));                                     // of all kv heads
    CHECK(!areOfClusters(shapeOf({1}, {530000}, 8, 8, 256)));                                    // too many
    CHECK(!areOfClusters(shapeOf({1, 1}, {70000, 20}, 1, 1, 256)));                              // keys
  }

  RoleTensors run(const HostKernel &by, const PagedCall &call, BlockOrder order) const {
    RoleTensors results = call.resultsBefore(kernel.dtype);
    by.run(call.hostCall(results, kProcessors), order);
    return results;
  }

  /// Against the definition, whatever the order of blocks, by clusters.
  void check(const PagedShape &shape) const {
    INFO(kernel.pattern << kernel.changes << ", page size " << shape.pageSize << ", keys " << shape.keys.front());
    CHECK(areOfClusters(shape));
    checkPaged(callOf(shape), 40, [&](const PagedCall &of, BlockOrder order) { return run(*code, of, order); });
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

} // namespace heddle::test

#endif
