//===- ArenaPools.cpp -------------------------------------------------------===//
#include "runtime/Device/ArenaPools.h"

#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kOperation = "arena";

} // namespace

Status ArenaPools::open(const DeviceState &state, uint64_t keptBytes) {
  const Driver &driver = *state.driver;
  cuda::MemPoolProps wanted = {};
  wanted.kind = cuda::kAllocationPinned;
  wanted.placeKind = cuda::kPlaceDevice;
  wanted.place = state.ordinal;
  int yes = 1;
  const std::pair<int, void *> attributes[] = {{cuda::kPoolReuseFollowsEvents, &yes},
                                               {cuda::kPoolReuseOpportunistic, &yes},
                                               {cuda::kPoolReuseInternalDependencies, &yes},
                                               {cuda::kPoolReleaseThreshold, &keptBytes}};
  for (cuda::MemPool &pool : pools) {
    HEDDLE_TRY(driver.check(driver.memPoolCreate(&pool, &wanted), kOperation, "cuMemPoolCreate"));
    for (const auto &[attribute, value] : attributes)
      HEDDLE_TRY(driver.check(driver.memPoolSetAttribute(pool, attribute, value), kOperation, "cuMemPoolSetAttribute"));
  }
  return {};
}

void ArenaPools::close(const Driver &driver) {
  for (cuda::MemPool pool : pools)
    if (pool)
      driver.memPoolDestroy(pool);
}

Status ArenaPools::allocate(const Driver &driver, int64_t bytes, cuda::Stream stream,
                            cuda::DevicePointer &address) const {
  const auto below = std::upper_bound(kBlocksBelow.begin(), kBlocksBelow.end() - 1, bytes);
  return driver.check(
      driver.memAllocFromPool(&address, size_t(bytes), pools[size_t(below - kBlocksBelow.begin())], stream), kOperation,
      "cuMemAllocFromPoolAsync");
}

Result<int64_t> ArenaPools::heldBytes(const Driver &driver, cuda::MemPool pool) const {
  int64_t held = 0;
  HEDDLE_TRY(
      driver.check(driver.memPoolGetAttribute(pool, cuda::kPoolReserved, &held), kOperation, "cuMemPoolGetAttribute"));
  return held;
}

Result<int64_t> ArenaPools::heldBytes(const Driver &driver) const {
  int64_t all = 0;
  for (cuda::MemPool pool : pools) {
    HEDDLE_ASSIGN(const int64_t held, heldBytes(driver, pool));
    all += held;
  }
  return all;
}

Status ArenaPools::trim(const Driver &driver, int64_t keepBytes) const {
  for (size_t i = pools.size(); i-- > 0;) {
    HEDDLE_ASSIGN(const int64_t all, heldBytes(driver));
    HEDDLE_ASSIGN(const int64_t own, heldBytes(driver, pools[i]));
    const int64_t kept = std::max<int64_t>(keepBytes - (all - own), 0);
    HEDDLE_TRY(driver.check(driver.memPoolTrimTo(pools[i], size_t(kept)), kOperation, "cuMemPoolTrimTo"));
  }
  return {};
}

} // namespace heddle
