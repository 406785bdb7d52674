#include "runtime/Device/Arena.h"

#include "runtime/Device/Capture.h"
#include "runtime/Device/DeviceState.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr const char *kOperation = "arena";

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
  pools.close(*state.driver);
}

bool Arena::isBeyondLimit(int64_t bytes) const {
  return options.limitBytes > 0 && (bytes > options.limitBytes || used.get() > options.limitBytes - bytes);
}

Result<void *> Arena::tryToTake(cuda::Stream stream, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isBeyondLimit(bytes))
    return Status::unavailable("the limit is " + bytesText(options.limitBytes));
  cuda::DevicePointer address = 0;
  HEDDLE_TRY(allocate(stream, bytes, address));
  blocks[address] = bytes;
  used.add(bytes);
  Counters::get().arenas.add(bytes);
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

Status Arena::waitForGiven() {
  for (const auto &[stream, event] : given)
    HEDDLE_TRY(event.synchronize());
  given.clear();
  return {};
}

Status Arena::allocate(cuda::Stream stream, int64_t bytes, cuda::DevicePointer &address) {
  const Driver &driver = *device.state()->driver;
  HEDDLE_ASSIGN(const int64_t before, pools.heldBytes(driver));
  HEDDLE_TRY(pools.allocate(driver, bytes, stream, address));
  HEDDLE_ASSIGN(int64_t held, pools.heldBytes(driver));
  const bool isSomethingFree = before > used.get();
  if (held > heldPeak && isSomethingFree) {
    HEDDLE_TRY(driver.check(driver.memFreeAsync(address, stream), kOperation, "cuMemFreeAsync"));
    HEDDLE_TRY(noteGiven(stream));
    HEDDLE_TRY(waitForGiven());
    trims.add();
    HEDDLE_TRY(pools.trim(driver, 0));
    HEDDLE_TRY(pools.allocate(driver, bytes, stream, address));
    HEDDLE_ASSIGN(held, pools.heldBytes(driver));
  }
  heldPeak = std::max(heldPeak, held);
  return {};
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
  HEDDLE_ASSIGN(const int64_t held, pools.heldBytes(*device.state()->driver));
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
  HEDDLE_TRY(state.driver->check(state.driver->memFreeAsync(block->first, stream), kOperation, "cuMemFreeAsync"));
  used.take(block->second);
  Counters::get().arenas.take(block->second);
  blocks.erase(block);
  return noteGiven(stream);
}

Status Arena::noteGiven(cuda::Stream stream) {
  if (isCaptured(*device.state()->driver, stream))
    return {};
  auto event = given.find(stream);
  if (event == given.end()) {
    HEDDLE_ASSIGN(DeviceEvent made, DeviceEvent::create(device));
    event = given.emplace(stream, std::move(made)).first;
  }
  return event->second.record(stream);
}

Status Arena::trim(uint64_t keepBytes) {
  const DeviceState &state = *device.state();
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kOperation));
  trims.add();
  return pools.trim(*state.driver, int64_t(std::min<uint64_t>(keepBytes, INT64_MAX)));
}

Result<ArenaStats> Arena::stats() {
  ContextScope scope(*device.state());
  HEDDLE_TRY(scope.status(kOperation));
  ArenaStats now;
  HEDDLE_ASSIGN(now.heldBytes, pools.heldBytes(*device.state()->driver));
  now.usedBytes = used.get(), now.usedPeakBytes = used.highest();
  now.takes = takes.get(), now.refusals = refusals.get(), now.trims = trims.get(), now.pressures = pressures.get();
  std::lock_guard<std::mutex> lock(mutex);
  now.blocks = int64_t(blocks.size());
  now.heldPeakBytes = heldPeak;
  return now;
}

} // namespace heddle
