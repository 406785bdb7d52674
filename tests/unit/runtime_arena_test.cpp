//===- runtime_arena_test.cpp - workspaces of a pool of the driver ----------===//
// On the recording driver's pools. Numbers in brackets are the promises of runtime/Include/heddle_arena.h.
#include "runtime/Device/Driver.h"
#include "runtime/Include/heddle_arena.h"
#include "runtime/Include/heddle_stats.h"
#include "runtime_fixture.h"

#include <thread>
#include <vector>

using namespace heddle;
using namespace heddle::fake;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

struct Opened {
  heddle_device *device = nullptr;
  heddle_arena *arena = nullptr;
  explicit Opened(heddle_arena_options options = {}) {
    test::startFake();
    fakeCudaSetCurrent(0);
    options.struct_size = sizeof(options);
    REQUIRE(heddle_device_open(0, &device) == HEDDLE_OK);
    REQUIRE_MESSAGE(heddle_arena_open(device, &options, &arena) == HEDDLE_OK, heddle_last_message());
  }
  ~Opened() {
    heddle_arena_close(arena);
    heddle_device_close(device);
    fakeCudaSetCurrent(-1);
  }
  void *take(uint64_t bytes, void *stream = nullptr) const {
    void *memory = nullptr;
    REQUIRE_MESSAGE(heddle_arena_take(arena, stream, bytes, &memory) == HEDDLE_OK, heddle_last_message());
    return memory;
  }
  void give(void *memory, void *stream = nullptr) const {
    REQUIRE_MESSAGE(heddle_arena_give(arena, stream, memory) == HEDDLE_OK, heddle_last_message());
  }
  heddle_arena_stats stats() const {
    heddle_arena_stats now = {};
    now.struct_size = sizeof(now);
    REQUIRE(heddle_arena_get_stats(arena, &now) == HEDDLE_OK);
    return now;
  }
};

heddle_arena_options optionsOf(uint64_t limit, uint64_t highWater = 0) {
  heddle_arena_options options = {};
  options.limit_bytes = limit, options.high_water_bytes = highWater;
  return options;
}

// Two streams of the driver, which are those of a program.
struct Streams {
  cuda::Stream first = nullptr, second = nullptr;
  const Driver *driver;
  Streams() : driver(test::require(Driver::open())) {
    driver->streamCreate(&first, cuda::kStreamNonBlocking, 0);
    driver->streamCreate(&second, cuda::kStreamNonBlocking, 0);
  }
  ~Streams() {
    driver->streamDestroy(first);
    driver->streamDestroy(second);
  }
};

} // namespace

TEST_CASE("what is taken is in use until it is given back, and held on") {
  const Opened opened;
  void *memory = opened.take(10 * kMiB);
  CHECK(reinterpret_cast<uintptr_t>(memory) % 256 == 0);
  CHECK(opened.take(0) == nullptr);
  CHECK(opened.stats().blocks == 1);
  CHECK(opened.stats().used_bytes == 10 * kMiB);
  CHECK(opened.stats().held_bytes == 10 * kMiB);
  opened.give(memory);
  opened.give(nullptr);
  CHECK(opened.stats().blocks == 0);
  CHECK(opened.stats().used_bytes == 0);
  CHECK(opened.stats().used_peak_bytes == 10 * kMiB);
  CHECK(opened.stats().held_bytes == 10 * kMiB);
  CHECK(opened.stats().fragmentation == 0);
  REQUIRE(heddle_arena_trim(opened.arena, 4 * kMiB) == HEDDLE_OK);
  CHECK(opened.stats().held_bytes == 4 * kMiB);
  CHECK(opened.stats().takes == 1);
  CHECK(opened.stats().trims == 1);
}

TEST_CASE("memory that was given back on one stream serves another, which waits for it") {
  const Opened opened;
  const Streams streams;
  opened.give(opened.take(8 * kMiB, streams.first), streams.first);
  void *held = fakeCudaHold(streams.first); // its work goes on
  opened.give(opened.take(8 * kMiB, streams.second), streams.second);
  CHECK(opened.stats().held_peak_bytes == 8 * kMiB);
  fakeCudaRelease(held);
}

TEST_CASE("before much more is held than was ever in use, what blocks of other sizes left goes back") {
  const Opened opened;
  std::vector<void *> blocks(300);
  for (void *&block : blocks)
    block = opened.take(kMiB); // which have a page of 2 MiB each
  for (void *block : blocks)
    opened.give(block);
  CHECK(opened.stats().held_bytes == 600 * kMiB);
  opened.give(opened.take(580 * kMiB));
  CHECK(opened.stats().trims == 1);
  CHECK(opened.stats().held_bytes == 580 * kMiB);
  CHECK(opened.stats().held_peak_bytes == 600 * kMiB);
}

TEST_CASE("[16] what is more than ever all the same has a 64th to spare, and more fits in that without growth") {
  for (uint64_t highWater : {uint64_t(0), 8000 * kMiB}) {
    const Opened opened(optionsOf(0, highWater));
    void *first = opened.take(3072 * kMiB);
    CHECK(opened.stats().held_bytes == 3072 * kMiB); // nothing came back
    opened.give(opened.take(kMiB));
    void *second = opened.take(1024 * kMiB);
    CHECK(opened.stats().trims == 1);
    CHECK(opened.stats().held_peak_bytes == (highWater ? 4096 : 4160) * kMiB);
    void *third = opened.take(60 * kMiB);
    CHECK(opened.stats().held_peak_bytes == (highWater ? 4156 : 4160) * kMiB);
    CHECK(opened.stats().trims == 1);
    for (void *block : {first, second, third})
      opened.give(block);
  }
}

TEST_CASE("a GPU that has nothing to spare serves all that fits") {
  const Opened opened;
  fakeCudaSetPoolBytes(4100 * kMiB);
  opened.give(opened.take(kMiB));
  void *first = opened.take(4096 * kMiB);
  CHECK(opened.stats().held_bytes == 4096 * kMiB);
  opened.give(first);
}

TEST_CASE("streams that come and go leave no events behind") {
  const Opened opened;
  const int before = fakeCudaCalls("cuEventCreate"), gone = fakeCudaCalls("cuEventDestroy_v2");
  for (int i = 0; i < 50; ++i) {
    const Streams streams;
    opened.give(opened.take(8 * kMiB, streams.first), streams.first);
    opened.give(opened.take(8 * kMiB, streams.second), streams.second);
  }
  const int made = fakeCudaCalls("cuEventCreate") - before;
  CHECK(made > 0);
  CHECK(made - (fakeCudaCalls("cuEventDestroy_v2") - gone) <= 2);
}

TEST_CASE("what came back came back, also where the driver has no event for it") {
  const Opened opened;
  for (const char *symbol : {"cuEventCreate", "cuEventRecord"}) {
    void *memory = opened.take(8 * kMiB);
    fakeCudaFail(symbol, 2, 0);
    opened.give(memory);
    fakeCudaFail(symbol, 0, 0);
    CHECK(opened.stats().blocks == 0);
  }
  opened.give(opened.take(20 * kMiB));
}

TEST_CASE("while one thread waits for work behind blocks, the arena serves others") {
  const Opened opened;
  const Streams streams;
  opened.give(opened.take(64 * kMiB, streams.first), streams.first);
  void *waiting = nullptr, *busy = fakeCudaHold(streams.first);
  opened.give(opened.take(8 * kMiB, streams.first), streams.first); // behind the work
  const int waits = fakeCudaCalls("cuEventSynchronize");
  std::thread other([&] {
    fakeCudaSetCurrent(0);
    waiting = opened.take(100 * kMiB, streams.second);
    fakeCudaSetCurrent(-1);
  });
  while (fakeCudaCalls("cuEventSynchronize") == waits)
    std::this_thread::yield();
  opened.give(opened.take(kMiB, streams.second), streams.second);
  CHECK(opened.stats().blocks == 0);
  fakeCudaRelease(busy);
  other.join();
  CHECK(opened.stats().held_bytes < 104 * kMiB);
  opened.give(waiting, streams.second);
}

TEST_CASE("blocks of all sizes together leave no more than the high-water mark") {
  const Opened opened(optionsOf(0, 40 * kMiB));
  void *blocks[] = {opened.take(kMiB), opened.take(20 * kMiB), opened.take(80 * kMiB)};
  for (void *block : blocks)
    opened.give(block);
  test::require(Driver::open())->streamSynchronize(nullptr);
  CHECK(opened.stats().held_bytes > 0);
  CHECK(opened.stats().held_bytes <= 46 * kMiB); // a page of each pool
}

TEST_CASE("what is held beyond the high-water mark goes back when a stream is waited for") {
  const Opened opened(optionsOf(0, 6 * kMiB)), other;
  for (const Opened *each : {&opened, &other})
    each->give(each->take(20 * kMiB));
  CHECK(opened.stats().held_bytes == 20 * kMiB);
  test::require(Driver::open())->streamSynchronize(nullptr);
  CHECK(opened.stats().held_bytes == 6 * kMiB);
  CHECK(other.stats().held_bytes == 20 * kMiB);
}

TEST_CASE("[15] beyond the limit a status names all sizes, and the arena goes on") {
  const Opened opened(optionsOf(10 * kMiB));
  void *memory = opened.take(6 * kMiB), *more = memory;
  CHECK(heddle_arena_take(opened.arena, nullptr, 5 * kMiB, &more) == HEDDLE_UNAVAILABLE);
  CHECK(more == memory); // unchanged
  CHECK_MESSAGE(test::lastMessageHas("asked for 5242880 bytes beside 6291456 bytes in use; it holds 6291456 bytes, the "
                                     "GPU has "),
                heddle_last_message());
  CHECK(test::lastMessageHas("the limit is 10485760 bytes"));
  CHECK(heddle_arena_take(opened.arena, nullptr, UINT64_MAX, &more) == HEDDLE_UNAVAILABLE);
  CHECK(opened.stats().refusals == 2);
  CHECK(opened.stats().trims == 0); // which would help nobody
  void *fitting = opened.take(4 * kMiB);
  opened.give(fitting);
  opened.give(memory);
  CHECK(opened.stats().used_bytes == 0);
}

TEST_CASE("[15] so when the GPU is full, after what is not in use was given back to it") {
  const Opened opened;
  fakeCudaSetPoolBytes(16 * kMiB);
  void *memory = opened.take(8 * kMiB), *more = nullptr;
  CHECK(heddle_arena_take(opened.arena, nullptr, 12 * kMiB, &more) == HEDDLE_UNAVAILABLE);
  CHECK_MESSAGE(test::lastMessageHas("CUDA_ERROR_OUT_OF_MEMORY"), heddle_last_message());
  CHECK(opened.stats().trims == 1);
  opened.give(memory);
  opened.give(opened.take(16 * kMiB));
}

namespace {

// Gives its block back when memory is short.
struct Friendly {
  const Opened *opened = nullptr;
  void *block = nullptr;
  uint64_t asked = 0;
  int times = 0;
  static int32_t listen(void *user, uint64_t bytes) {
    Friendly &self = *static_cast<Friendly *>(user);
    self.asked = bytes, ++self.times;
    if (!self.block)
      return 0;
    self.opened->give(self.block);
    self.block = nullptr;
    return 1;
  }
};

} // namespace

TEST_CASE("who is asked when memory is short may give some back, and then it is enough") {
  Friendly friendly;
  heddle_arena_options options = optionsOf(10 * kMiB);
  options.pressure = Friendly::listen, options.user = &friendly;
  const Opened opened(options);
  friendly.opened = &opened, friendly.block = opened.take(8 * kMiB);
  void *memory = opened.take(6 * kMiB), *more = nullptr;
  CHECK(friendly.times == 1);
  CHECK(friendly.asked == 6 * kMiB);
  CHECK(heddle_arena_take(opened.arena, nullptr, 6 * kMiB, &more) == HEDDLE_UNAVAILABLE);
  CHECK(friendly.times == 2);
  CHECK(opened.stats().pressures == 2);
  CHECK(opened.stats().refusals == 1);
  opened.give(memory);
}

TEST_CASE("[2] [5] what is wrong with a call is said, and changes nothing") {
  const Opened opened;
  void *memory = opened.take(kMiB);
  int other = 0;
  CHECK(heddle_arena_give(opened.arena, nullptr, &other) == HEDDLE_INVALID_ARGUMENT);
  opened.give(memory);
  CHECK(heddle_arena_give(opened.arena, nullptr, memory) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_arena_take(opened.arena, nullptr, 1, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_arena_take(nullptr, nullptr, 1, &memory) == HEDDLE_INVALID_ARGUMENT);
  heddle_arena *arena = nullptr;
  heddle_arena_options options = {};
  CHECK(heddle_arena_open(opened.device, &options, &arena) == HEDDLE_INVALID_ARGUMENT);
  options.struct_size = sizeof(options), options.limit_bytes = UINT64_MAX;
  CHECK(heddle_arena_open(opened.device, &options, &arena) == HEDDLE_INVALID_ARGUMENT);
  CHECK(test::lastMessageHas("limit_bytes"));
  fakeCudaFail("cuMemPoolSetAttribute", 1, 2);
  CHECK(heddle_arena_open(opened.device, nullptr, &arena) == HEDDLE_INTERNAL);
  fakeCudaFail("cuMemPoolSetAttribute", 0, 0);
  CHECK(arena == nullptr);
  CHECK(fakeCudaLivePools() == 2);
  fakeCudaFail("cuMemFreeAsync", 1, 0);
  memory = opened.take(kMiB);
  CHECK(heddle_arena_give(opened.arena, nullptr, memory) == HEDDLE_INTERNAL);
  fakeCudaFail("cuMemFreeAsync", 0, 0);
  opened.give(memory); // it is still there to be given
}

TEST_CASE("[12] a closed arena is refused, and its pool is gone") {
  heddle_arena *arena = nullptr;
  void *memory = nullptr;
  {
    const Opened opened;
    REQUIRE(heddle_arena_open(opened.device, nullptr, &arena) == HEDDLE_OK);
    CHECK(fakeCudaLivePools() == 4);
  }
  CHECK(heddle_arena_take(arena, nullptr, 1, &memory) == HEDDLE_OK); // it keeps the device
  heddle_arena_close(arena);
  heddle_arena_close(arena);
  CHECK(fakeCudaLivePools() == 0);
  CHECK(heddle_arena_take(arena, nullptr, 1, &memory) == HEDDLE_INVALID_ARGUMENT);
}

namespace {

// Calls of random sizes on two streams, with up to 64 blocks at a time; the same ones for the same seed.
void soak(const Opened &opened, const Streams &streams, int calls, uint64_t state) {
  auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  struct Block {
    void *memory = nullptr, *stream = nullptr;
  };
  std::vector<Block> blocks(64);
  for (int call = 0; call < calls; ++call) {
    Block &block = blocks[draw(blocks.size())];
    opened.give(block.memory, block.stream);
    block.stream = draw(2) ? streams.first : streams.second;
    block.memory = opened.take((uint64_t(1) << draw(29)) + draw(4096), block.stream); // up to 256 MiB
  }
  for (const Block &block : blocks)
    opened.give(block.memory, block.stream);
}

} // namespace

TEST_CASE("[16] calls of random sizes hold what they need, and the same calls once more no byte more") {
  const Opened opened;
  const Streams streams;
  const int calls = std::getenv("HEDDLE_TEST_ALL") ? 1000000 : 100000;
  soak(opened, streams, calls / 2, 1);
  const heddle_arena_stats warm = opened.stats();
  CHECK(warm.fragmentation >= 0);
  CHECK(warm.fragmentation < 0.05);
  soak(opened, streams, calls / 2, 1);
  const heddle_arena_stats stats = opened.stats();
  CHECK(stats.held_peak_bytes == warm.held_peak_bytes);
  CHECK(stats.used_peak_bytes == warm.used_peak_bytes);
  CHECK(stats.takes == calls);
  CHECK(stats.refusals == 0);
  CHECK(stats.blocks == 0);
  REQUIRE(heddle_arena_trim(opened.arena, 0) == HEDDLE_OK);
  CHECK(opened.stats().held_bytes == 0);
  heddle_stats all = {};
  all.struct_size = sizeof(all);
  REQUIRE(heddle_stats_get(&all) == HEDDLE_OK);
  CHECK(all.arena_bytes == 0);
  CHECK(all.arena_peak_bytes >= stats.used_peak_bytes);
}
