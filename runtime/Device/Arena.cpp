#include "runtime/Device/Arena.h"

#include "runtime/Device/Capture.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kOperation = "arena";
// Where blocks lie differs from round to round, and what is held with it, by less than 1% (H200).
constexpr int64_t kSpareShare = 64;

bool hasPools(const Driver &driver) {
  return driver.memPoolCreate && driver.memPoolDestroy && driver.memPoolSetAttribute && driver.memPoolGetAttribute &&
         driver.memPoolTrimTo && driver.memAllocFromPool && driver.memFreeAsync;
}

bool isShort(const Result<void *> &taken) { return taken.status().code() == StatusCode::unavailable; }

std::string bytesText(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

} // namespace

Result<std::unique_ptr<Arena>> Arena::open(const Device &device, const ArenaOptions &options) {
  std::unique_ptr<Arena> arena(new Arena(device, options));
  HEDDLE_TRY(arena->setUp());
  return arena;
}

Status Arena::setUp() {
  const DeviceState &state = *device.state();
  const Driver &driver = *state.driver;
  int isSupported = 0;
  if (!hasPools(driver) ||
      driver.deviceGetAttribute(&isSupported, cuda::kAttributeMemoryPools, state.ordinal) != cuda::kSuccess ||
      !isSupported)
    return Status::unsupported(
        "arena: this driver or GPU has no memory pools; a driver of CUDA 11.2 or later has them");
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kOperation));
  const RelaxedCapture relaxed(driver);
  return pools.open(state, options.highWaterBytes > 0 ? uint64_t(options.highWaterBytes) : UINT64_MAX);
}

Arena::~Arena() {
  Counters::get().arenas.take(used.get());
  const DeviceState &state = *device.state();
  if (state.isAbandoned)
    return;
  ContextScope scope(state);
  const RelaxedCapture relaxed(*state.driver);
  pools.close();
}

bool Arena::isBeyondLimit(int64_t bytes) const {
  return options.limitBytes > 0 && (bytes > options.limitBytes || used.get() + promised > options.limitBytes - bytes);
}

Result<void *> Arena::tryToTake(cuda::Stream stream, int64_t bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  if (isBeyondLimit(bytes))
    return Status::unavailable("the limit is " + bytesText(options.limitBytes));
  promised += bytes;
  Result<cuda::DevicePointer> allocated = allocate(lock, stream, bytes);
  promised -= bytes;
  HEDDLE_ASSIGN(const cuda::DevicePointer address, std::move(allocated));
  blocks[address] = bytes;
  used.add(bytes);
  Counters::get().arenas.add(bytes);
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

Result<cuda::DevicePointer> Arena::allocate(std::unique_lock<std::mutex> &lock, cuda::Stream stream, int64_t bytes) {
  cuda::DevicePointer address = 0;
  HEDDLE_ASSIGN(const int64_t growth, pools.allocate(bytes, stream, address));
  if (growth == 0)
    return address;
  HEDDLE_ASSIGN(int64_t held, pools.heldBytes());
  if (held > heldPeak && isSomethingBack) {
    HEDDLE_TRY(pools.free(address, stream));
    note(stream);
    HEDDLE_TRY(releaseRest(lock));
    HEDDLE_TRY(pools.allocate(bytes, stream, address).status());
    HEDDLE_ASSIGN(held, pools.heldBytes());
    if (held > heldPeak && options.highWaterBytes == 0) {
      pools.addSpare(held / kSpareShare, stream);
      HEDDLE_ASSIGN(held, pools.heldBytes());
    }
  }
  heldPeak = std::max(heldPeak, held);
  return address;
}

Status Arena::releaseRest(std::unique_lock<std::mutex> &lock) {
  const std::vector<std::shared_ptr<const DeviceEvent>> events = ends.all();
  isSomethingBack = false;
  lock.unlock();
  Status waited;
  for (const auto &event : events)
    if (waited.isOk())
      waited = event->synchronize();
  lock.lock();
  HEDDLE_TRY(std::move(waited));
  trims.add();
  return pools.trim(0);
}

void Arena::note(cuda::Stream stream) {
  if (!isCaptured(*device.state()->driver, stream))
    ends.note(device, stream);
}

Result<void *> Arena::take(cuda::Stream stream, uint64_t bytes) {
  if (bytes == 0)
    return static_cast<void *>(nullptr);
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kOperation));
  if (isCaptured(*state.driver, stream))
    return Status::unsupported("arena: the stream is captured, and what is taken then would belong to the graph");
  takes.add();
  const int64_t wanted = bytes > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(bytes);
  Result<void *> taken = tryToTake(stream, wanted);
  if (isShort(taken) && !isBeyondLimit(wanted)) {
    HEDDLE_TRY(trim(0));
    taken = tryToTake(stream, wanted);
  }
  if (isShort(taken) && options.pressure) {
    pressures.add();
    if (options.pressure(options.user, bytes)) {
      HEDDLE_TRY(trim(0));
      taken = tryToTake(stream, wanted);
    }
  }
  return isShort(taken) ? Result<void *>(refusal(wanted, taken.status())) : std::move(taken);
}

Status Arena::refusal(int64_t bytes, const Status &why) {
  refusals.add();
  std::unique_lock<std::mutex> lock(mutex);
  HEDDLE_ASSIGN(const int64_t held, pools.heldBytes());
  lock.unlock();
  HEDDLE_ASSIGN(const int64_t available, device.freeBytes());
  return {why.code(), "arena: asked for " + bytesText(bytes) + " beside " + bytesText(used.get()) +
                          " in use; it holds " + bytesText(held) + ", the GPU has " + bytesText(available) +
                          " free: " + why.message()};
}

Status Arena::give(cuda::Stream stream, void *memory) {
  if (!memory)
    return {};
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kOperation));
  std::lock_guard<std::mutex> lock(mutex);
  const auto block = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (block == blocks.end())
    return Status::invalidArgument("arena: memory: expected a block that it gave and did not get back");
  HEDDLE_TRY(pools.free(block->first, stream));
  used.take(block->second);
  Counters::get().arenas.take(block->second);
  blocks.erase(block);
  isSomethingBack = true;
  note(stream);
  return {};
}

Status Arena::trim(uint64_t keepBytes) {
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kOperation));
  trims.add();
  std::lock_guard<std::mutex> lock(mutex);
  return pools.trim(int64_t(std::min<uint64_t>(keepBytes, INT64_MAX)));
}

Result<ArenaStats> Arena::stats() {
  ContextScope scope(*device.state());
  HEDDLE_TRY(scope.status(kOperation));
  ArenaStats now;
  now.usedBytes = used.get(), now.usedPeakBytes = used.highest();
  now.takes = takes.get(), now.refusals = refusals.get(), now.trims = trims.get(), now.pressures = pressures.get();
  std::lock_guard<std::mutex> lock(mutex);
  now.blocks = int64_t(blocks.size());
  now.heldPeakBytes = heldPeak;
  HEDDLE_ASSIGN(now.heldBytes, pools.heldBytes());
  return now;
}

} // namespace heddle
