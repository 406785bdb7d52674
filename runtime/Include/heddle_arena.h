/*===- heddle_arena.h - device memory for workspaces --------------------------===
 * For callers who do not want to keep workspaces themselves: a pool of the driver's (cuMemPool), whose memory is given and
 * taken back in the order of streams. The promises of heddle.h and what it says of all functions hold here too.
 * docs/operations.md is the guide. And:
 * 15. What an arena refuses names the bytes that were asked for, those in use, those that it holds and those that are free
 *     on the GPU; everything that was given stays as it is, and the arena goes on.
 * 16. An arena whose callers ask for the same sizes holds no more memory after its first calls, nor otherwise while the most
 *     that was in use stays what it was. Where blocks come to lie differs from time to time: it has a 64th to spare for that,
 *     which is enough where blocks are large beside the driver's units of 32 MiB, and else nearly always (docs/operations.md).
 *===------------------------------------------------------------------------===*/
#ifndef HEDDLE_ARENA_H
#define HEDDLE_ARENA_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_arena heddle_arena;

/* Memory is short: so many bytes were asked for. Returns 1 if the callee has given memory back, then they are asked for
 * once more. On the thread that asks, without a lock: it may give blocks of the arena back. */
typedef int32_t (*heddle_arena_pressure)(void *user, uint64_t bytes);

typedef struct heddle_arena_options {
  uint32_t struct_size;
  int32_t reserved;
  uint64_t limit_bytes;      /* that are in use at a time; 0: as many as the GPU has */
  uint64_t high_water_bytes; /* what all pools hold beyond goes back to the GPU when a stream is waited for; 0: never */
  heddle_arena_pressure pressure; /* may be null */
  void *user;
} heddle_arena_options;

typedef struct heddle_arena_stats {
  uint32_t struct_size;
  int32_t reserved;
  int64_t blocks, used_bytes; /* that are given out */
  int64_t used_peak_bytes;
  int64_t held_bytes, held_peak_bytes; /* of the GPU's memory, as the driver counts it when a call ends */
  int64_t takes, refusals, trims, pressures;
  double fragmentation; /* share of held_peak_bytes that used_peak_bytes did not need */
} heddle_arena_stats;

/* An arena on the device; options may be null. UNSUPPORTED: a driver or GPU without memory pools (before CUDA 11.2). */
HEDDLE_API heddle_status heddle_arena_open(heddle_device *device, const heddle_arena_options *options,
                                           heddle_arena **arena);
/* *memory: so many bytes at a multiple of 256, for work on stream, or on others that wait for it by an event; null for 0
 * bytes. Where the memory is that of a block that was given back on another stream, the driver has this one wait. Before more
 * is held than ever, although blocks came back, the host waits for the work on their streams that lies before them, as long as
 * that takes, and gives what is not in use back to the GPU: seldom after the first calls, and other threads are served
 * meanwhile. If more is needed all the same, a 64th of all is taken on top, unless high_water_bytes are set. Where the GPU has no more, what is held and not in use goes back to it first; then, and at the limit,
 * pressure is asked. UNAVAILABLE: there is none (promise 15). UNSUPPORTED: stream is captured. */
HEDDLE_API heddle_status heddle_arena_take(heddle_arena *arena, void *stream, uint64_t bytes, void **memory);
/* From behind the work on stream on, the memory may be given to others. null: nothing happens. INVALID_ARGUMENT: no block
 * of this arena, or it was given back. */
HEDDLE_API heddle_status heddle_arena_give(heddle_arena *arena, void *stream, void *memory);
/* What is held beyond keep_bytes, and is not in use, goes back to the GPU now. */
HEDDLE_API heddle_status heddle_arena_trim(heddle_arena *arena, uint64_t keep_bytes);
/* stats->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_arena_get_stats(heddle_arena *arena, heddle_arena_stats *stats);
/* Promise 12. Waits for nothing; blocks that were not given back go when the context does. */
HEDDLE_API void heddle_arena_close(heddle_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
