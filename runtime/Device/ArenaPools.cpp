#include "runtime/Device/ArenaPools.h"

#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kOperation = "arena";

} // namespace

Status ArenaPools::open(const DeviceState &state, uint64_t kept) {
  driver = state.driver;
  keptBytes = kept;
  cuda::MemPoolProps wanted = {};
  wanted.kind = cuda::kAllocationPinned;
  wanted.placeKind = cuda::kPlaceDevice;
  wanted.place = state.ordinal;
  int yes = 1;
  const std::pair<int, void *> attributes[] = {{cuda::kPoolReuseFollowsEvents, &yes},
                                               {cuda::kPoolReuseOpportunistic, &yes},
                                               {cuda::kPoolReuseInternalDependencies, &yes},
                                               {cuda::kPoolReleaseThreshold, &kept}};
  for (cuda::MemPool &pool : pools) {
    HEDDLE_TRY(driver->check(driver->memPoolCreate(&pool, &wanted), kOperation, "cuMemPoolCreate"));
    for (const auto &[attribute, value] : attributes)
      HEDDLE_TRY(
          driver->check(driver->memPoolSetAttribute(pool, attribute, value), kOperation, "cuMemPoolSetAttribute"));
  }
  return {};
}

void ArenaPools::close() {
  for (cuda::MemPool pool : pools)
    if (pool)
      driver->memPoolDestroy(pool);
}

Result<int64_t> ArenaPools::allocate(int64_t bytes, cuda::Stream stream, cuda::DevicePointer &address) const {
  const auto below = std::upper_bound(kBlocksBelow.begin(), kBlocksBelow.end() - 1, bytes);
  const cuda::MemPool pool = pools[size_t(below - kBlocksBelow.begin())];
  HEDDLE_ASSIGN(const int64_t before, heldBytes(pool));
  HEDDLE_TRY(driver->check(driver->memAllocFromPool(&address, size_t(bytes), pool, stream), kOperation,
                           "cuMemAllocFromPoolAsync"));
  Result<int64_t> growth = growthOf(pool, before);
  if (!growth)
    driver->memFreeAsync(address, stream);
  return growth;
}

Status ArenaPools::free(cuda::DevicePointer address, cuda::Stream stream) const {
  return driver->check(driver->memFreeAsync(address, stream), kOperation, "cuMemFreeAsync");
}

void ArenaPools::addSpare(int64_t bytes, cuda::Stream stream) const {
  cuda::DevicePointer address = 0;
  bytes = (bytes + kUnit / 2) / kUnit * kUnit;
  if (bytes > 0 && driver->memAllocFromPool(&address, size_t(bytes), pools.back(), stream) == cuda::kSuccess)
    driver->memFreeAsync(address, stream);
}

Result<int64_t> ArenaPools::growthOf(cuda::MemPool pool, int64_t before) const {
  HEDDLE_ASSIGN(const int64_t after, heldBytes(pool));
  if (after <= before)
    return int64_t(0);
  HEDDLE_TRY(shareKept());
  return after - before;
}

Status ArenaPools::shareKept() const {
  if (keptBytes == UINT64_MAX)
    return {};
  HEDDLE_ASSIGN(const int64_t all, heldBytes());
  for (cuda::MemPool pool : pools) {
    HEDDLE_ASSIGN(const int64_t held, heldBytes(pool));
    uint64_t share = uint64_t(double(keptBytes) * (double(held) / double(std::max<int64_t>(all, 1))));
    HEDDLE_TRY(driver->check(driver->memPoolSetAttribute(pool, cuda::kPoolReleaseThreshold, &share), kOperation,
                             "cuMemPoolSetAttribute"));
  }
  return {};
}

Result<int64_t> ArenaPools::heldBytes(cuda::MemPool pool) const {
  int64_t held = 0;
  HEDDLE_TRY(driver->check(driver->memPoolGetAttribute(pool, cuda::kPoolReserved, &held), kOperation,
                           "cuMemPoolGetAttribute"));
  return held;
}

Result<int64_t> ArenaPools::heldBytes() const {
  int64_t all = 0;
  for (cuda::MemPool pool : pools) {
    HEDDLE_ASSIGN(const int64_t held, heldBytes(pool));
    all += held;
  }
  return all;
}

Status ArenaPools::trim(int64_t keepBytes) const {
  for (size_t i = pools.size(); i-- > 0;) {
    HEDDLE_ASSIGN(const int64_t all, heldBytes());
    HEDDLE_ASSIGN(const int64_t own, heldBytes(pools[i]));
    const int64_t kept = std::max<int64_t>(keepBytes - (all - own), 0);
    HEDDLE_TRY(driver->check(driver->memPoolTrimTo(pools[i], size_t(kept)), kOperation, "cuMemPoolTrimTo"));
  }
  return {};
}

} // namespace heddle
