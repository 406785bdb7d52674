/*===- heddle.h - the C interface of the shipped runtime ----------------------===
 * Owns the binary interface. Structs that may grow start with struct_size; set it to sizeof the struct you
 * compiled against. Promises, each with a test of the same number in tests/unit/runtime_*_test.cpp or
 * tests/unit/device_*_test.cpp; 8 to 10 are those of heddle_compiler.h:
 *  1. No function throws, prints, exits or reads the environment, with two exceptions:
 *     HEDDLE_CUDA_DRIVER_LIBRARY names the driver library to open instead of libcuda.so.1, and
 *     HEDDLE_NCCL_LIBRARY the NCCL library instead of libnccl.so.2.
 *  2. Every failing call returns a code and leaves a message for the calling thread. What it was to write is unchanged.
 *  3. Fields that the kernel does not serve must be zero; anything else is HEDDLE_UNSUPPORTED, never ignored.
 *  4. A launch allocates no memory, takes no lock and does not wait for the GPU, and works on any stream,
 *     also while that stream is captured into a graph.
 *  5. A refused argument is named, with the value found and the value expected; nothing was launched.
 *  6. Handles may be shared by threads. Closing one while another thread uses it is the caller's error.
 *  7. A launch whose sizes leave nothing to do succeeds without touching the GPU.
 * 11. Fields are appended only, in multiples of 8 bytes. A struct_size below this header's is that of an older
 *     version: fields behind it are zero, or are not written. One above is that of a newer version: what this
 *     version does not know must be zero (else HEDDLE_UNSUPPORTED), and is set to zero where it is asked for.
 * 12. Closing null, or a handle twice, does nothing. A closed handle is refused with HEDDLE_INVALID_ARGUMENT, as
 *     long as fewer than 1024 other handles of its kind were closed after it; then using it is the caller's error.
 * 13. A store whose file is deleted, replaced, cut or damaged while it is open answers from what it had, or
 *     returns a code; kernels that were found keep working.
 * Unless a function says otherwise: it may be called from any thread; strings that are passed are UTF-8, end with
 * a zero and are not kept; what it opens is the caller's, closed by the function of that name; and it can fail with
 * HEDDLE_INVALID_ARGUMENT for null and closed handles and with HEDDLE_INTERNAL when memory runs out.
 *===------------------------------------------------------------------------===*/
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
#else
#define HEDDLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heddle_status {
  HEDDLE_OK = 0,
  HEDDLE_INVALID_ARGUMENT = 1,
  HEDDLE_NOT_FOUND = 2,
  HEDDLE_UNSUPPORTED = 3,
  HEDDLE_UNAVAILABLE = 4, /* no driver, no GPU */
  HEDDLE_CORRUPT = 5,
  HEDDLE_NEWER = 6, /* the file was written by a newer version */
  HEDDLE_IO = 7,
  HEDDLE_DENIED = 8,
  HEDDLE_INTERNAL = 9
} heddle_status;

/* HEDDLE_E4M3 is float8_e4m3fn of the OCP 8-bit formats: 4 bits of exponent, 3 of fraction, no infinities, largest 448.
 * Calls of kinds "forward" and "decode" only. One whose k and v, and with kind "forward" also q, are of it may scale them
 * (descale_q below); out of q of e4m3 is bf16, or fp16 or fp32 where the kind says so. */
typedef enum heddle_dtype {
  HEDDLE_DTYPE_NONE = 0,
  HEDDLE_BF16 = 1,
  HEDDLE_FP16 = 2,
  HEDDLE_FP32 = 3,
  HEDDLE_E4M3 = 4
} heddle_dtype;

/* One tensor in device memory: size and stride of batch, row, head, dim, in elements. The last stride is 1; the
 * address and the other strides are multiples of 16 bytes, strides are not negative, and the tensor spans less
 * than 2^40 bytes. The stride of a dimension of size 1 is not looked at. */
typedef struct heddle_tensor {
  void *ptr;
  int32_t dtype; /* heddle_dtype */
  int32_t reserved;
  int64_t size[4];
  int64_t stride[4];
} heddle_tensor;

typedef enum heddle_operand_kind {
  HEDDLE_OPERAND_NONE = 0,
  /* Tensor in device memory, not null, row-major: argument number id of the pattern. Its extents are those of the call
   * and of the pattern's type; that it has so many elements, and what they are, is the caller's word: a launch cannot
   * look at it. Offsets that do not ascend give unspecified numbers; nothing outside of the tensor is read. */
  HEDDLE_OPERAND_POINTER = 1,
  /* Run-time size number id of the pattern; the length of a tensor has the tensor's id (of a bias in a pattern of parts: its
   * rows, those of the call first). INVALID_ARGUMENT: a size below attn.min, and a length that does not fit the call or
   * another length (more than 64 draft tokens, or more than there are queries or keys; offsets of queries and keys of
   * different lengths, one used entry for each document). Kernels of databases that are older than these checks trust the
   * caller. That it is of the argument's own kind is the caller's word. */
  HEDDLE_OPERAND_INT = 2,
  /* Run-time number id of the pattern, rounded to f32; ids count sizes and numbers alike. */
  HEDDLE_OPERAND_FLOAT = 3
} heddle_operand_kind;

typedef struct heddle_operand {
  int32_t id;
  int32_t kind; /* heddle_operand_kind: which member of value holds */
  union {
    const void *ptr;
    int64_t i64;
    double f64;
  } value;
} heddle_operand;

/* Where a call of kind "backward" writes the gradient of argument number id of the pattern, a number or a tensor of
 * floats that scores read, or the sink: row-major fp32 of the extents of the tensor, one element for a number. */
typedef struct heddle_gradient {
  int32_t id;
  int32_t reserved;
  float *ptr;
} heddle_gradient;

/* heddle_attention_args.flags. WITHOUT_GRAPH: a prepared call is launched kernel by kernel, which profilers that show a
 * CUDA graph as one want, and takes more of the host's time. */
enum { HEDDLE_WITHOUT_GRAPH = 1 };

/* One call, of a forward pass unless comments name other kinds, whose fields are zero then. Rows of k and v behind
 * seqlen_k never matter; those within it are finite, kept or not: NaN or infinity in one makes NaN of every row that
 * shares a tile with it. Values of magnitudes up to 2^27 never overflow. Nothing is owned; everything must stay valid
 * until the launched work has finished, the struct itself only during the call. What is written shares no byte with
 * anything else that is written or read, workspace included, else INVALID_ARGUMENT: exactly so for tensors and arrays,
 * also where views of one buffer interleave (a search that would take long says that they meet); of tensors of the
 * pattern a launch knows the first byte, a call on the processors all of them. Kind "backward" reads q, k, v, d_out, and out and lse as the forward
 * call on them wrote these, and d_lse if it is given; it writes d_q, d_k and d_v completely: 0 for what keeps nothing.
 * Kind "backward_accumulate" adds them to d_q, d_k and d_v, which are fp32: calls over parts of the keys, with k_origin
 * and with out and lse of all keys, sum up to the gradients of one call, but not of patterns of gradient(detached), of
 * which a call whose k_origin is not 0 is UNSUPPORTED. Kind "backward_accumulate_keys" adds to d_k and d_v, and writes
 * d_q: calls that meet all keys of their queries, among others of the same keys. */
typedef struct heddle_attention_args {
  uint32_t struct_size;
  uint32_t flags;  /* HEDDLE_WITHOUT_GRAPH; all other bits are zero */
  heddle_tensor q; /* [batch, seqlen_q, heads, head_dim] */
  heddle_tensor k; /* [batch, seqlen_k, kv_heads, head_dim]; heads is a multiple of kv_heads */
  heddle_tensor v; /* [batch, seqlen_k, kv_heads, value_dim]; key-major [batch, value_dim, kv_heads, seqlen_k] */
  /* [batch, seqlen_q, heads, value_dim]; written completely. dtype of q (of e4m3: bf16); fp32 for kind
   * "forward_fp32_out", fp16 of e4m3 for kind "forward_fp16_out". */
  heddle_tensor out;
  float *lse; /* [batch, heads, seqlen_q], natural log, written completely */
  /* Positions of row 0 of q and k; q_origin is 0 unless the pattern says given (or end: then its own value is taken
   * too). All positions lie in [-2^30, 2^30), and those of queries and keys within 2^30 of each other. */
  int64_t q_origin, k_origin;
  /* Kinds "decode", "decode_invariant" and "cascade", else null: see below. */
  const int32_t *cu_seqlens_q, *cu_seqlens_k, *seqused_k, *page_table;
  int32_t page_size; /* kind "decode": rows of k, or 0 */
  float scale;       /* of q . k; 0 means 1 / sqrt(head_dim) */
  /* Beside q, k or v of e4m3, null elsewhere: what its elements are multiplied by, a positive finite number for each (batch,
   * head): [batch, heads], [batch, kv_heads] and [batch, kv_heads]; of kind "decode" [sequences, kv_heads]; of kind
   * "forward_scale_rows_64" (or 128) for each 64 rows of q and k: [batch, heads, ceil(seqlen_q / 64)], and so k. Null: 1. They
   * lie where the tensors do; a launch takes the caller's word for their values, a call on the processors looks at them. */
  const float *descale_q, *descale_k, *descale_v;
  int64_t descale_q_stride[2], descale_k_stride[2], descale_v_stride[2]; /* 0: arrays are row-major */
  const float *carry_out;        /* null, or [batch, seqlen_q, heads, value_dim] to continue from, with carry_lse */
  const float *carry_lse;        /* null, or [batch, heads, seqlen_q] */
  uint64_t rng_seed, rng_offset; /* not served yet: 0 */
  void *workspace;               /* 256-byte aligned device memory, null if none is needed */
  uint64_t workspace_bytes;
  const heddle_operand *operands;
  uint64_t operand_count;
  heddle_tensor d_out; /* [batch, seqlen_q, heads, value_dim], dtype of out: the gradient of out. Kinds "row_dot" and
                        * "backward" */
  float *delta; /* [batch, heads, seqlen_q], written completely: sum over value_dim of out * d_out. Kind "row_dot" */
  const float *d_lse; /* null, or [batch, heads, seqlen_q]: the gradient of lse. Kind "backward" */
  heddle_tensor d_q;  /* [batch, seqlen_q, heads, head_dim], dtype of q. Kind "backward" */
  heddle_tensor d_k;  /* [batch, seqlen_k, kv_heads, head_dim], dtype of k. Kind "backward" */
  heddle_tensor d_v;  /* [batch, seqlen_k, kv_heads, value_dim], dtype of v. Kind "backward" */
  /* heddle_cpu_run: any; of a kernel of kind "backward_of_0_3" those of arguments 0 and 3, else null */
  const heddle_gradient *gradients;
  uint64_t gradient_count;
  /* Kind "decode": queries of sequences whose keys lie in pages or in ragged rows. In pages: k and v are [pages, page_size, kv_heads, dim], page_size 1
   * to 256, with any strides (keys or heads first; k and v apart or in one tensor). page_table is [sequences, max_pages]:
   * keys n * page_size and on of sequence s lie in page page_table[s * max_pages + n], and seqused_k[s] says how many keys
   * it has. With `tables` = kv_heads each kv head has a table and lengths of its own, page_table [kv_heads, sequences,
   * max_pages] and seqused_k [kv_heads, sequences]: to the query heads of that kv head the sequence is what its table
   * lists, and positions count along the list. Ragged, where page_table is null: k and v are [1, rows, kv_heads, dim], the
   * keys of sequence s are rows cu_seqlens_k[s] to cu_seqlens_k[s + 1] (sequences + 1 offsets, 0 first, rows last), of
   * which the first seqused_k[s] count where that is given; max_pages and tables are 0. q and out are [sequences, seqlen_q, heads, dim], and sequences is that batch or 0; or rows are ragged: q and
   * out are [1, rows, heads, dim], those of sequence s begin at row cu_seqlens_q[s] (sequences + 1 offsets, 0 first, rows
   * last), and sequences says how many. The queries of a sequence are its last positions, whatever the pattern says of
   * q_origin: the first one stands at seqused_k[s] less their number; q_origin and k_origin are 0. Numbers of queries and
   * of keys are for the pattern those of the sequence, and its batch is the sequence. Pages that the pattern keeps nothing
   * of are not read, nor are their entries in page_table. Lengths, offsets and tables are read by the launch: they may
   * change between launches and are the caller's word, but lengths beyond max_pages pages are cut there and those below 0
   * are 0, and offsets are cut likewise; calls on the processors look at them. "decode_invariant": bits of a sequence do not depend on others. */
  int32_t sequences, max_pages;
  /* Kinds "quantize" and "quantize_rotated", else zero: e4m3 tensors of the shapes of q, k and v, which are bf16, fp16 or fp32, written completely
   * with descale_q, descale_k and descale_v, none of them null. A descale is that of a (batch, head): its largest finite
   * magnitude / 448, at least 2^-126; 1 where all are 0; of kinds with "_scale_rows_64" that of each 64 rows of q and k.
   * Elements are multiplied by 1 / descale and rounded to nearest even; infinity, NaN become NaN. Length 0 leaves a tensor out. Key-major (kind, below): quantized_v as v. */
  heddle_tensor quantized_q;
  heddle_tensor quantized_k;
  heddle_tensor quantized_v;
  /* Null, or [batch, kv_heads, head_dim]: kinds "quantize" and "quantize_rotated" subtract the mean of a head's rows of k, rotated
   * where they are, from each of them before all else, and write it here. Scores of a query then lack scale * (q . mean), which the softmax does not see, unless
   * what is not linear (softcap) or a sink stands behind them; lse lacks as much. */
  float *k_mean;
  int32_t tables; /* kind "decode": page tables of each sequence, kv_heads; 0 or 1: one for all heads */
  int32_t reserved;
  /* Kinds "decode" and "cascade", where page_table is null: tables behind each other, of whole pages but the last. Pages of
   * sequence s are kv_indices[kv_indptr[s]] to kv_indices[kv_indptr[s + 1]] (sequences + 1 offsets, 0 first, none above
   * max_pages), of which the last one has kv_last_page_len[s] keys, 1 to page_size. max_pages is the length of kv_indices. Where seqused_k
   * is given, the first seqused_k[s] keys count. */
  const int32_t *kv_indptr, *kv_indices, *kv_last_page_len;
  /* Kind "cascade": as "decode" without `tables` and cu_seqlens_k, and how many of its first keys a sequence has in the same
   * pages as the one before it: [sequences], the first one 0. Results are those of "decode"; such keys are read once for
   * neighbours that share them. A number is the caller's word; beyond the keys of both it is cut, and calls on the processors
   * look at it and at the tables. */
  const int32_t *shared_k;
  /* [head_dim], each 1 or -1: kind "quantize_rotated" is "quantize" of rows of q and k that are rotated before all else. Of each n
   * neighbouring elements x of a row, n the largest power of two up to 256 that divides head_dim, y[i] = sum over j of
   * (-1)^popcount(i & j) * rotation[j] * x[j], / sqrt(n). Scores stay as they are, but for rounding, and what a few
   * elements stand out by is spread over n. Where one of them is infinite or NaN, or a sum is beyond fp32, y is NaN. A
   * launch multiplies by what it finds; calls on the processors refuse other numbers. */
  const float *rotation;
  /* Kind "decode" of a pattern of parts (heddle_pattern_part), null elsewhere: k and v hold a part of each sequence, the
   * keys at k_origins[s] and on (null: 0) of a whole of whole_k[s] keys (null: the part ends with it), [sequences] each.
   * The queries are the last positions of the whole, and the sizes of the whole, which are no operands here, are
   * whole_k[s]. A part may have no keys: out 0, lse -inf. Parts of kind "decode_fp32_out" and their lse make one call
   * over the keys of all of them. Not beside `tables`. Numbers are the caller's word, as lengths are: what is below 0 is 0,
   * what is beyond 2^30 is cut, and a whole ends where its part does or behind it. */
  const int32_t *k_origins, *whole_k;
} heddle_attention_args;

typedef struct heddle_store heddle_store;
typedef struct heddle_device heddle_device;
typedef struct heddle_kernel heddle_kernel;
typedef struct heddle_prepared heddle_prepared;

/* How a kernel was found, best first. EXACT: tuned on this GPU for calls of about these sizes; of several the nearest
 * ones'. */
typedef enum heddle_match {
  HEDDLE_MATCH_EXACT = 0,
  HEDDLE_MATCH_NEAREST_BUCKET = 1,
  HEDDLE_MATCH_SAME_ARCHITECTURE = 2,
  HEDDLE_MATCH_UNTUNED_DEFAULT = 3,
  HEDDLE_MATCH_NONE = 4
} heddle_match;

/* Which kernel is wanted. pattern is a name of the store's table of names or a pattern digest. */
typedef struct heddle_kernel_query {
  uint32_t struct_size;
  int32_t dtype; /* heddle_dtype */
  const char *pattern;
  const char *
      kind; /* null means "forward"; "decode"; "decode_invariant"; "cascade"; "quantize"; "quantize_rotated"; "backward", "backward_accumulate": gradients; "backward_of_0_3": also those
                     * of arguments 0 and 3 of the pattern, numbers ascending; "_e4m3_kv" behind each: k and v are
                     * e4m3, whatever q is; "_fp32_out" behind that: out is fp32, or "_fp16_out" of e4m3 fp16;
                     * "_tf32" behind these: products of fp32 rounded to tf32, "_fast" of e4m3: weights from bits of scores, lse from these; exact else;
                     * "_scale_rows_64" or "_scale_rows_128" behind all: so many rows of q and k share a scale (descale_q); "_v_key_major"
                     * behind "forward" (of e4m3), "quantize", "quantize_rotated": key n of v, or of what becomes of it, is element n of a row */
  int64_t head_dim, value_dim;
  int64_t batch, heads, kv_heads, seqlen_q; /* typical call, to choose by; "decode": sequences, queries of each */
  int64_t tiles_per_row;                    /* mean visited 128-key tiles per 128-query tile; 0 if unknown */
} heddle_kernel_query;

/* What is known about a loaded kernel. Strings live as long as the kernel. */
typedef struct heddle_kernel_info {
  uint32_t struct_size;
  int32_t match; /* heddle_match */
  const char *content_key, *arch, *generator, *config, *note;
  int64_t registers, spill_bytes, shared_bytes, param_count;
  double median_us; /* of the tuning that chose it; 0 if untuned */
} heddle_kernel_info;

enum { HEDDLE_OPEN_ALLOW_FOREIGN_WRITERS = 1, HEDDLE_OPEN_IMMUTABLE = 2 };

/* "0.6.0". Static; cannot fail. */
HEDDLE_API const char *heddle_version(void);
/* The tables of elements, sizes, kinds and roles that calls are checked by, as JSON; static; cannot fail. */
HEDDLE_API const char *heddle_tables(void);
/* The name of a code, "notFound"; static; cannot fail. */
HEDDLE_API const char *heddle_status_name(heddle_status status);
/* What went wrong in the last failing call of this thread; valid until its next failing call; "" if none failed. */
HEDDLE_API const char *heddle_last_message(void);

/* Opens a store, a database or a package, for reading. flags: HEDDLE_OPEN_*; IMMUTABLE is for files that nobody writes
 * while they are open: no locks, no side files, any file system. NOT_FOUND: no such file. CORRUPT: damaged, or no
 * store. NEWER: written by a later version. DENIED: others may write the file. IO: the system refuses. UNSUPPORTED: no
 * such flag. Kernels found through the store outlive it. */
HEDDLE_API heddle_status heddle_store_open(const char *path, uint32_t flags, heddle_store **store);
/* Adds a store that is asked after those before it: the shipped one under the user's own. The best match of all
 * answers, of equally good ones that of the earlier store; a name leads where the first store that knows it says.
 * Failures as heddle_store_open, the store is then as it was. Not while another thread uses the store. */
HEDDLE_API heddle_status heddle_store_add(heddle_store *store, const char *path, uint32_t flags);
/* Promise 12. */
HEDDLE_API void heddle_store_close(heddle_store *store);

/* Opens GPU number ordinal, or with -1 the one whose context is current on this thread (GPU 0 if none is).
 * Uses the current context if it belongs to that GPU, else the primary one, which is held until the handle and all
 * kernels are closed. The thread's current context stays as it is. UNAVAILABLE without driver or GPU, NOT_FOUND if
 * there is no GPU of that number. */
HEDDLE_API heddle_status heddle_device_open(int32_t ordinal, heddle_device **device);
/* Promise 12. Waits for nothing. */
HEDDLE_API void heddle_device_close(heddle_device *device);

/* Finds the best kernel and loads it, once per context and kernel: code is copied to the GPU, which may wait for work
 * that is under way there. NOT_FOUND if nothing fits, with what is missing and what would
 * make it (kind "backward": heddle compile --backward --db). UNSUPPORTED if all that fits wants a newer
 * driver, with its version. CORRUPT or IO if the store cannot be read, INTERNAL with the driver's words if it refuses the
 * code. While the kernel is open, the same question to the same store is answered from memory, in about a microsecond;
 * a kernel that another process publishes meanwhile is found at most a second later. */
HEDDLE_API heddle_status heddle_kernel_find(heddle_store *store, heddle_device *device,
                                            const heddle_kernel_query *query, heddle_kernel **kernel);
/* What is known of the kernel. info->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_kernel_get_info(const heddle_kernel *kernel, heddle_kernel_info *info);
/* Bytes of workspace a call with these arguments needs, a formula of the sizes; 0 for most kernels. The workspace
 * fields are not looked at. Failures as heddle_kernel_launch, but for memory that overlaps: only sizes count. */
HEDDLE_API heddle_status heddle_kernel_workspace(const heddle_kernel *kernel, const heddle_attention_args *args,
                                                 uint64_t *bytes);
/* Checks the arguments and launches on stream (a CUstream or cudaStream_t of the kernel's context; null: the default
 * stream). Returns when the work is enqueued. INVALID_ARGUMENT or UNSUPPORTED name the field; INTERNAL holds the
 * driver's error, which may be that of earlier work on the GPU. Whether the GPU can reach the addresses is asked by
 * heddle_prepare only. Two launches at once must not share out, lse or workspace. */
HEDDLE_API heddle_status heddle_kernel_launch(const heddle_kernel *kernel, void *stream,
                                              const heddle_attention_args *args);
/* Promise 12. Work that was launched must have finished; prepared calls keep the kernel loaded. */
HEDDLE_API void heddle_kernel_close(heddle_kernel *kernel);

/* Checks once, launches often: the arguments, addresses included, are frozen. args is not kept. Failures as
 * heddle_kernel_launch, and INVALID_ARGUMENT for addresses that the driver knows this GPU cannot reach. Where the
 * driver can (CUDA 12.6), up to 64 prepared calls of a context are CUDA graphs, whose launch takes the host a third of
 * the time; the driver may keep about 113 KB of device memory for each until it is closed. flags may say that this one
 * is none. */
HEDDLE_API heddle_status heddle_prepare(const heddle_kernel *kernel, const heddle_attention_args *args,
                                        heddle_prepared **prepared);
/* As heddle_kernel_launch with the frozen arguments: one launch of its graph, or one driver call per kernel and one per
 * clear of its workspace where it has none, while stream is captured, and while another thread launches the same call.
 * */
HEDDLE_API heddle_status heddle_prepared_launch(const heddle_prepared *prepared, void *stream);
/* Promise 12. Work that was launched must have finished. */
HEDDLE_API void heddle_prepared_close(heddle_prepared *prepared);

/* A group of ranks computes one call together: each has some rows of queries and of the keys alike, and receives what its
 * rows keep of the keys of others. A plan says who has what, and what travels in which step; it is data that ranks share
 * (heddle_compiler.h makes it, from a pattern; its text may be stored and sent). A group is one rank's end of it. */
typedef struct heddle_group heddle_group;
typedef struct heddle_group_plan heddle_group_plan;

typedef struct heddle_group_plan_info {
  uint32_t struct_size;
  int32_t ranks;
  int64_t rows, heads, kv_heads; /* of the whole */
  /* Rows of k that travel in a forward call, of all ranks together, each as often as heads of it do; as many of v. */
  int64_t travelling;
  const char *pattern; /* digest of the pattern of parts; lives as long as the plan */
  const char *text;    /* that heddle_group_plan_parse takes; lives as long as the plan */
  int32_t writes_d_q;  /* 1: rows meet all their keys in one launch of the gradients: d_q may be of q's type, too */
  int32_t reserved;
} heddle_group_plan_info;

/* CORRUPT: no text of a plan. */
HEDDLE_API heddle_status heddle_group_plan_parse(const char *text, heddle_group_plan **plan);
/* info->struct_size is read, the rest written. */
HEDDLE_API heddle_status heddle_group_plan_get_info(const heddle_group_plan *plan, heddle_group_plan_info *info);
/* How many rows a rank has. */
HEDDLE_API heddle_status heddle_group_plan_rows(const heddle_group_plan *plan, int32_t rank, int64_t *rows);
/* Promise 12. */
HEDDLE_API void heddle_group_plan_close(heddle_group_plan *plan);

/* A group of threads of this process, for calls on its processors: writes as many handles as ranks, each for one thread.
 * limit_seconds: a rank that waits longer for others says that they are lost; 0: 30. */
HEDDLE_API heddle_status heddle_group_open_local(int32_t ranks, double limit_seconds, heddle_group **groups);
enum { HEDDLE_GROUP_ID_BYTES = 128 };
/* Of a group of GPUs that is to be opened: so many bytes, which one rank makes and all others get. UNAVAILABLE: no NCCL,
 * which is opened at run time (HEDDLE_NCCL_LIBRARY). */
HEDDLE_API heddle_status heddle_group_make_id(void *id);
/* Collective: one rank of a group of GPUs, a GPU each, over NCCL. UNAVAILABLE: no NCCL; a rank did not come within the
 * limit. INVALID_ARGUMENT: two ranks have one GPU. */
HEDDLE_API heddle_status heddle_group_open(heddle_device *device, const void *id, int32_t rank, int32_t ranks,
                                           double limit_seconds, heddle_group **group);
/* The same over an ncclComm_t of the caller's, which outlives the group and is neither aborted nor destroyed by it. */
HEDDLE_API heddle_status heddle_group_open_nccl(void *communicator, int32_t rank, int32_t ranks, double limit_seconds,
                                                heddle_group **group);

/* Calls of a group of GPUs. kernels: of the pattern of parts, for the rank's device, one of each kind that the call needs:
 * for "forward" those of "forward" and "forward_fp32_out", for gradients that of "backward_accumulate", or of
 * "backward_accumulate_keys" for a d_q of q's type (writes_d_q); of placement-free plans those that HEDDLE_BATCH_INVARIANT gives. args
 * has the rank's own rows, its ranges one behind the other: q, k, v, out, lse (null: not wanted), of kind "backward" d_out, d_lse,
 * d_q, d_k, d_v, which are fp32 without gaps, written completely; q_origin, k_origin and the carry are 0; operands are those of
 * the pattern, without sizes of the whole: of a bias the rank's rows, as of q, with all keys of the whole. */
HEDDLE_API heddle_status heddle_group_workspace(const heddle_group *group, const heddle_group_plan *plan,
                                                const heddle_kernel *const *kernels, int32_t kernel_count,
                                                const char *kind, const heddle_attention_args *args, uint64_t *bytes);
/* Collective. Enqueues the rank's share on stream, and returns when that is done. The first call of a kind, plan, types
 * and sizes waits for the other ranks, so that what disagrees is refused on every one of them before anything is sent;
 * later ones do not: all ranks make the same calls in the same order. UNAVAILABLE: a rank is lost; it is named. */
HEDDLE_API heddle_status heddle_group_launch(heddle_group *group, const heddle_group_plan *plan,
                                             const heddle_kernel *const *kernels, int32_t kernel_count,
                                             const char *kind, void *stream, const heddle_attention_args *args);
/* Waits for what was enqueued on stream. UNAVAILABLE: it does not end within the limit, as a rank is lost. */
HEDDLE_API heddle_status heddle_group_wait(heddle_group *group, void *stream);

/* From any thread: the rank leaves. Calls that wait end with UNAVAILABLE, here and on other ranks, with `why` or null. */
HEDDLE_API heddle_status heddle_group_abort(heddle_group *group, const char *why);
/* Promise 12. Ranks that still wait for this one are told. CUDA graphs of its calls may outlive it: its communicator is kept for
 * them, and ends when a group is opened or closed behind the last one. */
HEDDLE_API void heddle_group_close(heddle_group *group);

#ifdef __cplusplus
}
#endif

#endif
