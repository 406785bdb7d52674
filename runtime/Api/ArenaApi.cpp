#include "runtime/Api/Handles.h"
#include "runtime/Device/Arena.h"
#include "runtime/Include/heddle_arena.h"

#include <cstddef>

using namespace heddle;

struct heddle_arena {
  std::unique_ptr<Arena> arena;
  HandleLife life{};
};

namespace {

Status checkOpen(const heddle_arena *arena) { return heddle::checkOpen("arena", "arena", arena); }

Result<ArenaOptions> optionsOf(const heddle_arena_options *asked) {
  ArenaOptions options;
  if (!asked)
    return options;
  heddle_arena_options given;
  HEDDLE_TRY(readVersioned("arena", *asked, offsetof(heddle_arena_options, limit_bytes), given));
  for (const auto &[name, bytes] :
       {std::pair{"limit_bytes", given.limit_bytes}, {"high_water_bytes", given.high_water_bytes}})
    if (bytes > uint64_t(INT64_MAX))
      return Status::invalidArgument(std::string("arena: ") + name + ": expected less than 2^63, got " +
                                     std::to_string(bytes));
  return ArenaOptions{int64_t(given.limit_bytes), int64_t(given.high_water_bytes), given.pressure, given.user};
}

} // namespace

extern "C" {

heddle_status heddle_arena_open(heddle_device *device, const heddle_arena_options *options, heddle_arena **arena) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(heddle::checkOpen("arena", "device", device));
    if (!arena)
      return missing("arena", "arena");
    HEDDLE_ASSIGN(const ArenaOptions known, optionsOf(options));
    HEDDLE_ASSIGN(std::unique_ptr<Arena> opened, Arena::open(device->device, known));
    *arena = new heddle_arena{std::move(opened)};
    return {};
  });
}

heddle_status heddle_arena_take(heddle_arena *arena, void *stream, uint64_t bytes, void **memory) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(arena));
    if (!memory)
      return missing("arena", "memory");
    HEDDLE_ASSIGN(*memory, arena->arena->take(static_cast<cuda::Stream>(stream), bytes));
    return {};
  });
}

heddle_status heddle_arena_give(heddle_arena *arena, void *stream, void *memory) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(arena));
    return arena->arena->give(static_cast<cuda::Stream>(stream), memory);
  });
}

heddle_status heddle_arena_trim(heddle_arena *arena, uint64_t keep_bytes) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(arena));
    return arena->arena->trim(keep_bytes);
  });
}

heddle_status heddle_arena_get_stats(heddle_arena *arena, heddle_arena_stats *stats) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(arena));
    if (!stats)
      return missing("arena", "stats");
    HEDDLE_ASSIGN(const ArenaStats now, arena->arena->stats());
    const heddle_arena_stats known = {
        sizeof(known),     0,         now.blocks,   now.usedBytes, now.usedPeakBytes, now.heldBytes,
        now.heldPeakBytes, now.takes, now.refusals, now.trims,     now.pressures,     now.fragmentation()};
    return writeVersioned("arena", known, offsetof(heddle_arena_stats, blocks), *stats);
  });
}

void heddle_arena_close(heddle_arena *arena) { closeHandle(arena); }

} // extern "C"
