//===- arena_soak.cpp - heddle-arena-soak -----------------------------------===//
// heddle-arena-soak [--calls=N] [--touch] [--most=MIB] [--allowed=SHARE] [--growth=SHARE]: takes and gives blocks of random sizes on two streams,
// three rounds of a quarter of the calls to warm up and one more of the same calls, and says what the arena held; --touch writes
// every block on the GPU. Sizes are up to --most MiB, a power of two, each doubling as likely. Prints one JSON line; then blocks
// are taken until one is refused: exit code 1 if the last round, in which no more was in use, held more than the others by more
// than --growth of that, or at all, --allowed of what was held, or a twentieth, was of no use, or what was refused does not say which sizes, or leaves anything that cannot be used.
//===----------------------------------------------------------------------===//
#include "runtime/Device/Arena.h"
#include "runtime/Device/DeviceState.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace heddle;

namespace {

struct Options {
  int64_t calls = 100000;
  bool touches = false;
  int64_t mostMiB = 4096;
  double allowed = 0.05;
  double growth = 0;
};

struct Scene {
  Device device;
  DeviceStream streams[2];
  std::unique_ptr<Arena> arena;
};

struct Block {
  void *memory = nullptr;
  cuda::Stream stream = nullptr;
};

Status replace(Scene &scene, Block &block, cuda::Stream stream, uint64_t bytes, bool touches) {
  HEDDLE_TRY(scene.arena->give(block.stream, block.memory));
  block = {nullptr, stream};
  HEDDLE_ASSIGN(block.memory, scene.arena->take(stream, bytes));
  if (!touches)
    return {};
  const Driver &driver = *scene.device.state()->driver;
  return driver.check(driver.memsetBytes(reinterpret_cast<uintptr_t>(block.memory), 1, bytes, stream), "touch",
                      "cuMemsetD8Async");
}

// Up to 64 blocks at a time; the same ones in every call.
Status soak(Scene &scene, const Options &options) {
  uint64_t state = 1;
  auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  uint64_t doublings = 1;
  while ((uint64_t(1) << doublings) <= uint64_t(options.mostMiB) << 20)
    ++doublings;
  std::vector<Block> blocks(64);
  for (int64_t call = 0; call < options.calls / 4; ++call) {
    Block &block = blocks[draw(blocks.size())];
    const cuda::Stream stream = scene.streams[draw(2)].handle();
    HEDDLE_TRY(replace(scene, block, stream, (uint64_t(1) << draw(doublings)) + draw(4096), options.touches));
  }
  for (const Block &block : blocks)
    HEDDLE_TRY(scene.arena->give(block.stream, block.memory));
  for (const DeviceStream &stream : scene.streams)
    HEDDLE_TRY(scene.device.synchronize(stream.handle()));
  return {};
}

// Blocks until the GPU has no more: the refusal names what was asked for and what is there, every block can be written to, and
// once they are back the same sizes are given again.
Result<bool> exhaust(Scene &scene, const Options &options, std::string &said) {
  constexpr uint64_t kBytes = uint64_t(3) << 30;
  const cuda::Stream stream = scene.streams[0].handle();
  const Driver &driver = *scene.device.state()->driver;
  size_t given = 0;
  bool isGood = true;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<void *> blocks;
    for (Result<void *> taken = scene.arena->take(stream, kBytes);; taken = scene.arena->take(stream, kBytes)) {
      if (!taken) {
        said = taken.status().message();
        isGood &= taken.status().code() == StatusCode::unavailable;
        break;
      }
      blocks.push_back(*taken);
    }
    for (const char *word : {"asked for", "in use", "holds", "free"})
      isGood &= said.find(word) != std::string::npos;
    isGood &= !blocks.empty() && (turn == 0 || blocks.size() == given);
    given = blocks.size();
    for (void *block : blocks) {
      if (options.touches)
        HEDDLE_TRY(driver.check(driver.memsetBytes(reinterpret_cast<uintptr_t>(block), 2, kBytes, stream), "touch",
                                "cuMemsetD8Async"));
      HEDDLE_TRY(scene.arena->give(stream, block));
    }
    HEDDLE_TRY(scene.device.synchronize(stream));
  }
  HEDDLE_ASSIGN(const ArenaStats stats, scene.arena->stats());
  return isGood && stats.blocks == 0 && stats.usedBytes == 0 && stats.refusals == 2;
}

Result<bool> measure(const Options &options) {
  HEDDLE_ASSIGN(Device device, Device::open());
  HEDDLE_ASSIGN(DeviceStream first, DeviceStream::create(device));
  HEDDLE_ASSIGN(DeviceStream second, DeviceStream::create(device));
  HEDDLE_ASSIGN(std::unique_ptr<Arena> arena, Arena::open(device, {}));
  Scene scene{device, {std::move(first), std::move(second)}, std::move(arena)};
  for (int round = 0; round < 3; ++round)
    HEDDLE_TRY(soak(scene, options));
  HEDDLE_ASSIGN(const ArenaStats warm, scene.arena->stats());
  const auto begin = std::chrono::steady_clock::now();
  HEDDLE_TRY(soak(scene, options));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  HEDDLE_ASSIGN(const ArenaStats stats, scene.arena->stats());
  const int64_t growth = stats.heldPeakBytes - warm.heldPeakBytes;
  std::string refusal;
  HEDDLE_ASSIGN(const bool isUsable, exhaust(scene, options, refusal));
  std::printf("{\"calls\": %lld, \"used_peak_bytes\": %lld, \"held_peak_bytes\": %lld, \"fragmentation\": %.4f, "
              "\"growth_bytes\": %lld, \"call_us\": %.3f, \"refusal\": \"%s\", \"usable\": %s}\n",
              static_cast<long long>(stats.takes), static_cast<long long>(stats.usedPeakBytes),
              static_cast<long long>(stats.heldPeakBytes), stats.fragmentation(), static_cast<long long>(growth),
              took.count() / double(options.calls / 4), refusal.c_str(), isUsable ? "true" : "false");
  const bool isSteady = double(growth) <= options.growth * double(warm.heldPeakBytes);
  return isUsable && isSteady && stats.fragmentation() < options.allowed && stats.blocks == 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--calls=", 8) == 0 && std::atoll(argv[i] + 8) > 3)
      options.calls = std::atoll(argv[i] + 8);
    else if (std::strcmp(argv[i], "--touch") == 0)
      options.touches = true;
    else if (std::strncmp(argv[i], "--most=", 7) == 0 && std::atoll(argv[i] + 7) > 0)
      options.mostMiB = std::atoll(argv[i] + 7);
    else if (std::strncmp(argv[i], "--allowed=", 10) == 0 && std::atof(argv[i] + 10) > 0)
      options.allowed = std::atof(argv[i] + 10);
    else if (std::strncmp(argv[i], "--growth=", 9) == 0 && std::atof(argv[i] + 9) >= 0)
      options.growth = std::atof(argv[i] + 9);
    else
      return std::fprintf(
                 stderr,
                 "heddle-arena-soak: no option '%s'; there are --calls, --touch, --most, --allowed and --growth\n",
                 argv[i]),
             2;
  const Result<bool> isGood = measure(options);
  if (!isGood)
    return std::fprintf(stderr, "error: %s\n", isGood.status().message().c_str()), 1;
  return *isGood ? 0 : 1;
}
