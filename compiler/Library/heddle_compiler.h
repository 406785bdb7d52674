/*===- heddle_compiler.h - the C interface of libheddle -----------------------===
 * libheddle is heddle_runtime (heddle.h, every function of it) and the compiler: patterns from text, kernels compiled,
 * tuned and kept in a database, attention on this machine's processors. A program links one of the two libraries.
 * The promises of heddle.h and what it says of all functions (threads, strings, who closes what, failures) hold here
 * too, but for the environment: HEDDLE_DB, HEDDLE_SHIPPED_DB, HEDDLE_NVRTC_LIBRARY, CUDA_HOME, XDG_CACHE_HOME, HOME and
 * PATH are read as `heddle --help` and heddle_compiler_options say, where options leave their place empty. And:
 *  8. A kernel is compiled once per pattern, family, architecture, default and database, however many threads ask for it:
 *     defaults differ for calls of at most 64, 128 and 256 and of more queries, of e4m3 forward (not "_v_key_major") also
 *     from 8192 queries on. One that takes any k_origin, where the filed one does not, is compiled once per process.
 *  9. A pattern is immutable and thread safe, a compiler thread safe; work in the background keeps what it needs of
 *     both.
 * 10. Work in the background never takes a kernel away: a found kernel stays as it is, a later question may give a
 *     better one.
 *===------------------------------------------------------------------------===*/
#ifndef HEDDLE_COMPILER_H
#define HEDDLE_COMPILER_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_pattern heddle_pattern;
typedef struct heddle_compiler heddle_compiler;
typedef struct heddle_task heddle_task;

/* Strings live as long as the pattern. */
typedef struct heddle_pattern_info {
  uint32_t struct_size;
  int32_t argument_count;
  int32_t takes_q_origin; /* 1: the position of query 0 is given per call */
  int32_t reserved;
  const char *name;
  const char *digest; /* 64 hex digits; equal for two spellings of one pattern */
  const char *text;   /* the verified pattern as MLIR */
  const char *notes;  /* warnings, in LLVM's style; "" if none */
} heddle_pattern_info;

/* Argument number `id` of a pattern, which is the id of its operands in a call. Strings live as long as the pattern. */
typedef struct heddle_pattern_argument {
  uint32_t struct_size;
  int32_t id;
  int32_t kind;         /* heddle_operand_kind: POINTER for a tensor, INT for a size, FLOAT for a number */
  int32_t has_default;  /* of a size or a number; a launch must be given every value all the same */
  int32_t takes_length; /* 1: a tensor whose length a call gives as well, as operand of kind INT with the same id */
  int32_t of_whole;     /* 1: where the whole ends, of which calls are parts; no operand of kind "decode" (whole_k) */
  const char *name;
  const char *type;                           /* as MLIR spells it: "i32", "f32", "memref<?xi32>" */
  const char *doc;                            /* attn.doc; "" if none */
  int64_t default_int, min_int;               /* of a size */
  double default_float, min_float, max_float; /* of a number; infinite where nothing bounds it */
} heddle_pattern_argument;

/* One verified pattern from MLIR text. label stands for the file in diagnostics (null: "pattern"); name says which
 * pattern of the text (null: the only one). INVALID_ARGUMENT with rendered diagnostics, file:line:column first. */
HEDDLE_API heddle_status heddle_pattern_parse(const char *text, const char *label, const char *name,
                                              heddle_pattern **pattern);
/* The same from a file; one that cannot be read is INVALID_ARGUMENT too, with the system's words. */
HEDDLE_API heddle_status heddle_pattern_read(const char *path, const char *name, heddle_pattern **pattern);
/* What the pattern is. info->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_pattern_get_info(const heddle_pattern *pattern, heddle_pattern_info *info);
/* Of argument 0 to argument_count - 1. argument->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_pattern_get_argument(const heddle_pattern *pattern, int32_t index,
                                                     heddle_pattern_argument *argument);
/* The pattern whose calls are parts of one call of `pattern`, of as many queries as keys: q_origin and k_origin are given
 * per call, and two more arguments, "whole_queries" and "whole_keys", say where the positions of the whole end; where a
 * tensor has an entry for each query and key (a bias), "whole_columns" says how many a row of it has. What a
 * part keeps is what the whole keeps of its pairs. Of kind "decode" each sequence is a part, and says these by k_origins and
 * whole_k. Such a tensor takes a length in a part: so many rows, of which that of query 0 of the call is the
 * first. Columns are those of all keys of the whole, or fewer with those of the call's keys, and the address is where that
 * of position 0 would be. A pattern of parts gives itself. UNSUPPORTED, with the
 * reason: calls cannot be parts (draft tokens, offsets of documents that count rows). */
HEDDLE_API heddle_status heddle_pattern_part(const heddle_pattern *pattern, heddle_pattern **part);
/* Promise 12. Work in the background keeps what it needs (promise 9). */
HEDDLE_API void heddle_pattern_close(heddle_pattern *pattern);

/* A call on this machine's processors, in fp32 inside, for the arguments of heddle.h with addresses of host memory:
 * dtypes bf16, fp16 and fp32; strides in elements, the last one 1, otherwise any; workspace is not looked at, results
 * that are arrays (lse) may be null, and sizes that have defaults may be left out. kind: null means "forward"; a kind of
 * gradients, such as "backward" or "backward_accumulate": every pattern has them, their bits are the same in every run,
 * and those of numbers and tensors of floats that scores read, and of sinks, which gradients of the arguments names, are
 * written too. The machine code of a pattern is made once. Returns when everything is written. threads 0: all processors,
 * their number changes no bit. INVALID_ARGUMENT or UNSUPPORTED name the field, and nothing was written: what a launch
 * refuses, in the same words, and what tensors of integers hold that the pattern does not take (offsets that do not begin
 * with 0, do not ascend or end before rows do, and those of queries behind them; lists that do not ascend), which
 * launches cannot look at: of kind "decode" lengths, offsets and the pages that are read as well. UNSUPPORTED: no such
 * kind, or one without q. */
HEDDLE_API heddle_status heddle_cpu_run(const heddle_pattern *pattern, const char *kind,
                                        const heddle_attention_args *args, int32_t threads);
/* What heddle_cpu_run would refuse now, but for entries of page_table; computes nothing. */
HEDDLE_API heddle_status heddle_cpu_check(const heddle_pattern *pattern, const char *kind,
                                          const heddle_attention_args *args);

/* How a call lies over the ranks of a group. */
typedef struct heddle_group_options {
  uint32_t struct_size;
  int32_t ranks;
  int64_t seqlen, heads, kv_heads; /* of the whole; as many queries as keys, which lie alike */
  /* null or "contiguous"; "balanced": contiguous, cut where rows keep as many pairs; "zigzag": chunks r and
   * 2 * ranks - 1 - r; "striped": stripes of 128 rows or more, in turn, "striped:16": of 16; or the ranges of every rank, "0:64,192:256;64:192": ranks by semicolons, BEGIN:END by commas.
   * "auto": of these with a name the one that sends least of those whose plans of `form` are predicted to be over first, within
   * 2%, and of unequal parts only where none of equal ones is among these */
  const char *layout;
  /* null or "auto": the form whose calls are predicted to be over first (docs/distributed.md), "gather" where nothing is
   * known; "gather": keys that a rank asks for come at once, before the rows that need them; "ring": one peer a step,
   * in the memory of two steps; "ulysses": every rank computes all rows of some heads, where the ranks divide the heads, and
   * divide those of k and v or are a multiple of them, and the pattern is the same for every head; "ulysses4+gather" and
   * "ulysses4+ring": so within teams of 4 consecutive ranks, which divide the ranks, and between teams as the second word says */
  const char *form;
  uint32_t flags;       /* HEDDLE_GROUP_* */
  int32_t dtype;        /* heddle_dtype; of "auto", as what begins with batch; 0: HEDDLE_BF16 */
  int64_t farthest_gap; /* keys further apart are met in launches of their own; 0: 4096 */
  /* PLACEMENT_FREE: launches begin at a multiple of so many keys of every lattice, that of the kernels' tiles; 0: 256. */
  int64_t column_step;
  /* Sizes that differ from their defaults; tensors of integers, in host memory, with their lengths; lengths of others. */
  const heddle_operand *operands;
  uint64_t operand_count;
  /* What "auto" decides on, the same on every rank; plans are of any such sizes. 0: a batch of 1, a head_dim of 128, a
   * value_dim as head_dim; kernels as fast as those of an H200, links of its host: 643 TFLOP/s on kept pairs, 150 GB/s each
   * way, 10 us a message (`heddle ring links` measures a machine's own). */
  int64_t batch, head_dim, value_dim;
  double kernel_tflops, link_gbps, link_us;
  /* So many consecutive ranks are of a host, whose links are these, and others as above; 0: all links are alike. Rates that
   * are 0: 150 GB/s, 10 us. */
  int64_t host_ranks;
  double host_link_gbps, host_link_us;
} heddle_group_options;

enum {
  /* The bits of results do not depend on the number of ranks, nor on which rows they have. Only "gather". Gradients are
   * computed twice: those of queries where these lie, and those of keys and values where these do. Calls take kernels
   * that are asked for as HEDDLE_BATCH_INVARIANT. Of patterns with gradient(detached) ranks have all keys, from the first one on, that the
   * queries of their own keys keep, as k, v and fp32 gradients; of a tensor with an entry for each query (a bias) what all
   * queries that keep keys of the rank have for these. */
  HEDDLE_GROUP_PLACEMENT_FREE = 1,
  /* "auto" takes the form whose forward call and gradients together are over first; else the call alone counts. */
  HEDDLE_GROUP_GRADIENTS = 2
};

/* The form that heddle_group_plan_make takes of the same options, of static storage, and, where it was chosen, what a call is
 * predicted to take; 0: nothing is known. */
HEDDLE_API heddle_status heddle_group_choose_form(const heddle_pattern *pattern, const heddle_group_options *options,
                                                  const char **form, double *milliseconds);

/* Plans calls of the pattern, forward and of gradients, over the ranks of a group: for heddle_pattern_part of it. The
 * pattern keeps the same pairs whatever the plan. INVALID_ARGUMENT: a rank without rows, a layout that is none.
 * UNSUPPORTED: what heddle_pattern_part says; a tensor that masks read is not given. */
HEDDLE_API heddle_status heddle_group_plan_make(const heddle_pattern *pattern, const heddle_group_options *options,
                                                heddle_group_plan **plan);
/* Memory that a rank sends to another one, or that takes what another one sends. */
typedef struct heddle_message {
  int32_t peer, reserved;
  void *data;
  uint64_t bytes; /* 1 or more */
} heddle_message;

/* Carries a step's messages of one rank, whatever with: MPI, sockets, torch.distributed. All are under way together; those
 * between two ranks match in the order in which each of them lists them, over all steps. On return the memory may be used.
 * 0, or another number and why, as a text of at most why_bytes: the group is over then. Called by the thread that calls
 * heddle_group_run. How long it waits for others is its own. */
typedef int32_t (*heddle_exchange)(void *context, const heddle_message *sends, int32_t send_count,
                                   const heddle_message *receives, int32_t receive_count, char *why,
                                   uint64_t why_bytes);
/* One rank of a group of processes that compute on processors. */
HEDDLE_API heddle_status heddle_group_open_carried(int32_t rank, int32_t ranks, heddle_exchange exchange, void *context,
                                                   heddle_group **group);
/* One rank's share on this machine's processors, of a group of threads (heddle_group_open_local) or of processes: every
 * rank calls it, with the pattern of parts. args: as heddle_group_launch says, in host memory; workspace is not looked at. */
HEDDLE_API heddle_status heddle_group_run(heddle_group *group, const heddle_group_plan *plan,
                                          const heddle_pattern *part, const char *kind,
                                          const heddle_attention_args *args, int32_t threads);

enum {
  /* Never writes a database: what is compiled lives in memory, 32 MiB of it beside the kernels that are open; what was
   * not asked for longest is compiled again when it is. No searches. */
  HEDDLE_COMPILER_READ_ONLY = 1,
  HEDDLE_COMPILER_ALLOW_FOREIGN_WRITERS = 2, /* accept databases that other users may write */
  HEDDLE_COMPILER_FORCE_NETWORK = 4          /* write on a network file system */
};

typedef struct heddle_compiler_options {
  uint32_t struct_size;
  uint32_t flags;       /* HEDDLE_COMPILER_* */
  const char *database; /* made if missing; null: $HEDDLE_DB, else heddle/kernels.db in the cache folder */
  /* Databases and packed files that are only read, separated by colons; null: $HEDDLE_SHIPPED_DB. */
  const char *shipped;
  /* heddle, in whose processes searches run kernels; null: bin/heddle beside the folder of this library, or PATH; "":
   * they run in this process, where a kernel that hangs or faults takes the context along. */
  const char *program;
  int32_t workers; /* threads that compile for searches; 0: one less than there are processors */
  int32_t reserved;
} heddle_compiler_options;

/* options may be null. Failures as heddle_store_open, but for a database that is missing and is made. */
HEDDLE_API heddle_status heddle_compiler_open(const heddle_compiler_options *options, heddle_compiler **compiler);
/* Promise 12. Cancels what runs in the background and waits for it: at most a compilation, or one measurement. Kernels
 * and patterns outlive it; tasks are over, and still to be closed. A compilation that a search gave up after a minute
 * goes on: where one still runs when the process exits, it ends with its exit code two seconds later, without what would
 * be called after that. In a child of fork it waits for nothing, and work in
 * the background is refused with INTERNAL: it stays with the parent. */
HEDDLE_API void heddle_compiler_close(heddle_compiler *compiler);

/* The calls that a kernel is for. Everything below dtype may be 0 if unknown, but head_dim. */
typedef struct heddle_problem {
  uint32_t struct_size;
  int32_t dtype; /* heddle_dtype of q, k and v */
  /* null: "forward"; "backward", "backward_accumulate": gradients, with "_of_0_3" behind them also those of arguments 0
   * and 3; "_fp32_out" behind each: out, and d_out, are fp32; "_tf32" behind all: as in heddle_kernel_query */
  const char *kind;
  int64_t head_dim, value_dim;    /* value_dim 0: head_dim */
  int64_t batch, heads, kv_heads; /* of kind "decode" batch counts sequences, */
  int64_t seqlen_q, seqlen_k;     /* and seqlen_q is the queries of each, or their mean */
  int64_t q_origin, k_origin;     /* within the limits of heddle_attention_args */
  /* Sizes and numbers that differ from their defaults, lengths of tensors; not tensors: searches make some. */
  const heddle_operand *operands;
  uint64_t operand_count;
} heddle_problem;

/* *pairs: of queries and keys that a call of these sizes keeps, over batch and heads; a pair that n branches keep counts n
 * times. dtype, kind and head dims are not looked at. UNSUPPORTED: the pattern has no closed form for it, tensors that masks
 * read decide, or there are 2^63 and more. */
HEDDLE_API heddle_status heddle_pattern_pairs(const heddle_pattern *pattern, const heddle_problem *problem,
                                              int64_t *pairs);

enum {
  HEDDLE_ONLY_STORED = 1, /* never compiles: NOT_FOUND says what is missing */
  /* Where nothing is stored, the portable default is compiled and returned, and the one for this GPU in the background:
   * ask again later. Kinds whose bits do not depend on the run, and BATCH_INVARIANT, have no such first kernel: they wait
   * for the one. */
  HEDDLE_FIRST_SOON = 2,
  /* Beside another flag or alone: bits of a row, and of gradients of a key, do not depend on what else the call computes, as
   * HEDDLE_GROUP_PLACEMENT_FREE wants, nor, of gradients, on the run: kinds are then those of "deterministic". "decode" is
   * then "decode_invariant", whose bits of a sequence do not depend on other sequences: another kind to databases, so what was
   * tuned for "decode" does not serve. UNSUPPORTED: "cascade", whose groups are of the batch, "quantize", and q of e4m3. Where
   * the kernel of other kinds cuts long rows or keys into parts, or rescales rows as others want it, its like that does not is
   * compiled and kept in memory; ONLY_STORED then finds nothing. Which kernel that is follows the problem's sizes: give those
   * of the whole, on all ranks; kernels of "decode_invariant" have the same bits for all sizes, tuned or not. */
  HEDDLE_BATCH_INVARIANT = 4
};

/* The best kernel of the databases, else the default for this GPU, compiled now and filed; loaded. A question that was
 * asked before and whose kernel is open takes a few microseconds. Where that kernel keeps or drops whole blocks of keys
 * and refuses the problem's k_origin, one that takes any is compiled and kept in memory. A kernel that could not be
 * filed serves all the same, and its note says why it was not. UNAVAILABLE: there is no NVRTC. UNSUPPORTED: no kernel
 * serves these sizes, or gradients of this pattern, with what each lacks. */
HEDDLE_API heddle_status heddle_compiler_kernel(heddle_compiler *compiler, heddle_device *device,
                                                const heddle_pattern *pattern, const heddle_problem *problem,
                                                uint32_t flags, heddle_kernel **kernel);

/* The end of work in the background, on a thread of the compiler: exactly once per task. kernel is null unless status
 * is HEDDLE_OK, and then the callee's to close. message is valid during the call. Must not close the compiler. */
typedef void (*heddle_task_done)(void *user, heddle_status status, const char *message, heddle_kernel *kernel);

typedef struct heddle_tune_options {
  uint32_t struct_size;
  int32_t verified_rows; /* of each candidate compared with the definition; 0: 32 */
  double budget_seconds; /* of wall time; 0: 20 */
  const char *strategy;  /* null: the default one; `heddle tune --help` names them */
} heddle_tune_options;

/* Compiles the default for this GPU in the background, unless it is stored. done may be null. *task is the caller's, to
 * wait for and to close; closing it at once lets the work go on. What is wrong with the problem is said here, what goes
 * wrong later by the task. */
HEDDLE_API heddle_status heddle_compiler_compile(heddle_compiler *compiler, heddle_device *device,
                                                 const heddle_pattern *pattern, const heddle_problem *problem,
                                                 heddle_task_done done, void *user, heddle_task **task);
/* Searches the fastest kernel for the problem, whose sizes must all be given, in the background; task and done as of
 * heddle_compiler_compile, options may be null. Searches are for "forward" and the kinds of gradients, those of
 * arguments ("backward_of_0_3") included, with out of the type of q; those of a compiler run one after the other.
 * DENIED: opened for reading only. The GPU is shared with this process's own launches: times suffer from them. */
HEDDLE_API heddle_status heddle_compiler_tune(heddle_compiler *compiler, heddle_device *device,
                                              const heddle_pattern *pattern, const heddle_problem *problem,
                                              const heddle_tune_options *options, heddle_task_done done, void *user,
                                              heddle_task **task);
/* Waits at most so many seconds; 0 does not wait, negative and infinite ones wait for ever, NaN is INVALID_ARGUMENT and
 * leaves *is_done as it is. *is_done: whether it is over, its callback included. Returns the status of the work, with its
 * message, or OK while it runs. */
HEDDLE_API heddle_status heddle_task_wait(heddle_task *task, double seconds, int32_t *is_done);
/* Asks it to end, and returns at once; what a search found until then is filed. Null, closed and ended tasks: nothing
 * happens. */
HEDDLE_API void heddle_task_cancel(heddle_task *task);
/* Promise 12. Neither cancels nor waits. */
HEDDLE_API void heddle_task_close(heddle_task *task);

#ifdef __cplusplus
}
#endif

#endif
