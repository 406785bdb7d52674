/*===- heddle_stats.h - what a running process says of itself -------------------===
 * Counters of the library, from its start: they never go down, and closing kernels leaves them. The promises of heddle.h
 * and what it says of all functions hold here too. docs/operations.md is the guide. And:
 * 14. Counting takes no lock, no memory, and at most ten instructions of a prepared call's launch, which takes some 130,
 *     and thousands in the driver.
 *===------------------------------------------------------------------------===*/
#ifndef HEDDLE_STATS_H
#define HEDDLE_STATS_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the process. */
typedef struct heddle_stats {
  uint32_t struct_size;
  int32_t kernels;                  /* that heddle_stats_kernel knows: 0 to kernels - 1 */
  int64_t launches, pairs, samples; /* of all kernels */
  int64_t found[5];                 /* questions for a kernel, by heddle_match of the answer; 4: there was none */
  int64_t compilations, searches, store_waits, store_retries;
  double compilation_seconds, search_seconds, store_wait_seconds;
  int64_t workspace_bytes;               /* of calls that are prepared */
  int64_t workspace_peak_bytes;          /* the most of prepared and launched calls */
  int64_t refusals[10];                  /* failing calls, by heddle_status */
  int64_t lost_samples;                  /* times that were not taken, as 16 launches of the GPU were under way */
  int64_t drifts;                        /* times that a kernel became slow: heddle_drift */
  int64_t arena_bytes, arena_peak_bytes; /* that arenas have given out: heddle_arena.h */
} heddle_stats;

/* Of a kernel on a GPU; of kernels beyond the 1023rd together, as "others". Strings live as long as the process. */
typedef struct heddle_kernel_stats {
  uint32_t struct_size;
  int32_t reserved;
  const char *kernel;  /* content key */
  const char *pattern; /* digest */
  const char *kind;
  const char *device; /* name of the GPU */
  const char *bus;    /* "00000000:1b:00.0" */
  int64_t launches;
  int64_t pairs; /* that launches of prepared calls kept, where they were told: heddle_prepared_set_pairs */
  int64_t found[5];
  int64_t samples; /* launches whose times on the GPU are known */
  double sample_seconds;
  int64_t drifts;
} heddle_kernel_stats;

/* stats->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_stats_get(heddle_stats *stats);
/* The same of one kernel. NOT_FOUND: no such number. */
HEDDLE_API heddle_status heddle_stats_kernel(int32_t index, heddle_kernel_stats *stats);
/* The counters as metrics, in the text format of OpenMetrics 1.0: *bytes is how many they take with their zero, and they
 * are written if capacity is that much. text may be null where capacity is 0. */
HEDDLE_API heddle_status heddle_stats_text(char *text, uint64_t capacity, uint64_t *bytes);

/* From now on one in so many launches of each kernel is timed on the GPU, by an event before and one behind it; 0: none,
 * as at first. One in 64 or more takes at most 0.5% of the GPU's time: kernels of less than some 11 us are timed less
 * often still. The first 16 launches of a GPU that are timed have the driver make their events. Launches into a stream
 * that is captured are not timed. */
HEDDLE_API heddle_status heddle_stats_sample(uint32_t every);

/* A kernel that takes longer on a GPU, for a problem, than when it was tuned for it there: of launches that are timed
 * (heddle_stats_sample) of kernels that were found with HEDDLE_MATCH_EXACT, in calls of exactly the sizes that the time
 * was stored of. 30 of them at least are looked at, and less than one look in a million is wrong where times vary, however
 * they do, but do not grow by more than 2%. Slowdowns of 5, 10 and 30% are found within 200, 100 and 40 times. */
typedef struct heddle_drift {
  uint32_t struct_size;
  int32_t samples; /* that show it */
  const char *kernel, *pattern, *device, *bus;
  const char *problem;         /* "2x32[8]x8192 (1023)": batch, heads [kv heads], seqlen_q, arguments of the pattern */
  double expected_us;          /* stored */
  double median_us, spread_us; /* of the samples; median absolute deviation */
  double factor;               /* median_us / expected_us */
  int64_t since_unix;          /* seconds */
} heddle_drift;

/* drift and its strings: the strings live as long as the process. */
typedef void (*heddle_drift_found)(void *user, const heddle_drift *drift);

/* Whom to tell when a kernel becomes slow, in the place of who was told before; null: nobody. Called on the thread that
 * launches or asks for counters, without a lock; it must not launch kernels of this library. */
HEDDLE_API heddle_status heddle_stats_on_drift(heddle_drift_found found, void *user);
/* Number index of those that are slow now, from 0. NOT_FOUND: there are not so many, which is no refusal that is counted.
 * drift->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_stats_drift(int32_t index, heddle_drift *drift);

/* Pairs of queries and keys that one launch of the call keeps, over batch and heads, as `heddle explain` counts them:
 * a kernel does not know. INVALID_ARGUMENT: below 0. */
HEDDLE_API heddle_status heddle_prepared_set_pairs(heddle_prepared *prepared, int64_t pairs);

#ifdef __cplusplus
}
#endif

#endif
