//===- FakePool.cpp - the exported driver functions: memory pools ----------===//
// Memory of a pool is pages of 2 MiB, mapped where they are needed: blocks of half a page or more have pages of their own,
// smaller ones share some. Nothing lies behind the addresses. Pages that were given back in the order of one stream go to
// another one when its work is done, or at once if the pool may have one stream wait for the other.
#include "FakeState.h"

#include <list>

using namespace heddle::cuda;
using namespace heddle::fake;

namespace {

constexpr uint64_t kPage = uint64_t(2) << 20, kUnit = 512;

struct FreePages {
  uint64_t pages;
  std::shared_ptr<StreamWork> work;
  int64_t number;
};

struct Block {
  MemPool pool;
  uint64_t pages; // 0: it shares one
};

std::map<uint64_t, Block> &blocks() {
  static std::map<uint64_t, Block> all;
  return all;
}

} // namespace

namespace heddle::cuda {
struct MemPoolStruct {
  int reuse[4] = {0, 1, 1, 1}; // by CUmemPool_attribute
  uint64_t threshold = 0;
  uint64_t held = 0;
  std::list<FreePages> free;
  std::map<uint64_t, std::map<uint64_t, uint64_t>> shared; // begin and end of blocks, by page

  uint64_t freePages() const {
    uint64_t pages = 0;
    for (const FreePages &each : free)
      pages += each.pages;
    return pages;
  }
  // Usable in the order of this stream.
  bool isUsable(const FreePages &each, const std::shared_ptr<StreamWork> &work) const {
    return each.work == work || each.work->isDone(each.number) || reuse[kPoolReuseInternalDependencies];
  }
  bool takePages(uint64_t wanted, const std::shared_ptr<StreamWork> &work) {
    uint64_t usable = 0;
    for (const FreePages &each : free)
      usable += isUsable(each, work) ? each.pages : 0;
    const uint64_t fresh = wanted > usable ? wanted - usable : 0;
    if (fresh * kPage > state().poolBytes - held)
      return false;
    held += fresh * kPage;
    for (auto each = free.begin(); wanted > fresh && each != free.end();) {
      const uint64_t taken = isUsable(*each, work) ? std::min(each->pages, wanted - fresh) : 0;
      wanted -= taken, each->pages -= taken;
      each = each->pages == 0 ? free.erase(each) : std::next(each);
    }
    return true;
  }
  void trim(uint64_t keep) {
    while (held > keep && !free.empty()) {
      const uint64_t gone = std::min((held - keep + kPage - 1) / kPage, free.front().pages);
      held -= gone * kPage, free.front().pages -= gone;
      if (free.front().pages == 0)
        free.pop_front();
    }
  }
};
} // namespace heddle::cuda

namespace {

uint64_t freshAddress(uint64_t bytes) {
  static uint64_t next = uint64_t(1) << 44;
  return (next += bytes) - bytes;
}

// In the first gap of a page that others are in, or 0.
uint64_t inSharedPage(MemPoolStruct &pool, uint64_t bytes) {
  for (auto &[page, taken] : pool.shared) {
    uint64_t begin = page;
    for (const auto &[first, end] : taken) {
      if (first - begin >= bytes)
        break;
      begin = end;
    }
    if (page + kPage - begin >= bytes) {
      taken[begin] = begin + bytes;
      return begin;
    }
  }
  return 0;
}

Code allocate(MemPoolStruct &pool, uint64_t bytes, const std::shared_ptr<StreamWork> &work, uint64_t &address) {
  const bool isShared = bytes < kPage / 2;
  bytes = isShared ? (bytes + kUnit - 1) / kUnit * kUnit : bytes;
  address = isShared ? inSharedPage(pool, bytes) : 0;
  const uint64_t pages = isShared ? 0 : (bytes + kPage - 1) / kPage;
  if (!address) {
    if (!pool.takePages(isShared ? 1 : pages, work))
      return kErrorOutOfMemory;
    address = freshAddress((isShared ? 1 : pages) * kPage);
    if (isShared)
      pool.shared[address][address] = address + bytes;
  }
  blocks()[address] = {&pool, pages};
  return kSuccess;
}

void release(uint64_t address, const Block &block, const std::shared_ptr<StreamWork> &work) {
  MemPoolStruct &pool = *block.pool;
  uint64_t pages = block.pages;
  if (pages == 0) {
    const auto page = std::prev(pool.shared.upper_bound(address));
    page->second.erase(address);
    if (!page->second.empty())
      return;
    pool.shared.erase(page);
    pages = 1;
  }
  if (!pool.free.empty() && pool.free.back().work == work) {
    pool.free.back().pages += pages, pool.free.back().number = work->last;
    return;
  }
  pool.free.push_back({pages, work, work->last});
}

} // namespace

void heddle::fake::settlePools() {
  for (MemPool pool : state().pools)
    pool->trim(pool->threshold);
}

extern "C" {

Code cuMemPoolCreate(MemPool *pool, const MemPoolProps *props) {
  FAKE_ENTER_UNCAPTURED(cuMemPoolCreate);
  if (props->kind != kAllocationPinned || props->placeKind != kPlaceDevice || props->place >= state().deviceCount)
    return kErrorInvalidValue;
  *pool = new MemPoolStruct;
  state().pools.insert(*pool);
  return kSuccess;
}

// One with blocks lives on with them.
Code cuMemPoolDestroy(MemPool pool) {
  FAKE_ENTER_CONTEXT(cuMemPoolDestroy);
  if (state().pools.erase(pool) == 0)
    return kErrorInvalidValue;
  for (const auto &[address, block] : blocks())
    if (block.pool == pool)
      return kSuccess;
  delete pool;
  return kSuccess;
}

Code cuMemPoolSetAttribute(MemPool pool, int attribute, void *value) {
  FAKE_ENTER(cuMemPoolSetAttribute);
  if (attribute < kPoolReuseFollowsEvents || attribute > kPoolReleaseThreshold || !state().pools.count(pool))
    return kErrorInvalidValue;
  if (attribute == kPoolReleaseThreshold)
    std::memcpy(&pool->threshold, value, sizeof pool->threshold);
  else
    std::memcpy(&pool->reuse[attribute], value, sizeof(int));
  return kSuccess;
}

Code cuMemPoolGetAttribute(MemPool pool, int attribute, void *value) {
  FAKE_ENTER(cuMemPoolGetAttribute);
  if (attribute != kPoolReserved || !state().pools.count(pool))
    return kErrorInvalidValue;
  std::memcpy(value, &pool->held, sizeof(uint64_t));
  return kSuccess;
}

Code cuMemPoolTrimTo(MemPool pool, size_t keep) {
  FAKE_ENTER(cuMemPoolTrimTo);
  pool->trim(keep);
  return kSuccess;
}

Code cuMemAllocFromPoolAsync(DevicePointer *pointer, size_t bytes, MemPool pool, Stream stream) {
  FAKE_ENTER_CONTEXT(cuMemAllocFromPoolAsync);
  if (bytes == 0 || !state().pools.count(pool))
    return kErrorInvalidValue;
  if (bytes > state().poolBytes)
    return kErrorOutOfMemory;
  uint64_t address = 0;
  if (Code code = allocate(*pool, bytes, workOf(stream), address))
    return code;
  *pointer = address;
  return kSuccess;
}

Code cuMemFreeAsync(DevicePointer pointer, Stream stream) {
  FAKE_ENTER_CONTEXT(cuMemFreeAsync);
  const auto block = blocks().find(pointer);
  if (block == blocks().end())
    return kErrorInvalidValue;
  release(pointer, block->second, workOf(stream));
  blocks().erase(block);
  return kSuccess;
}

} // extern "C"
