/* attention FILE PATTERN [LENGTH [SIZE...]]: one attention call from a kernel database or package, in C.
 * SIZEs are the run-time sizes of the pattern in their order: `attention kernels.heddle sliding_window 8192 1023`.
 * q and k are random and v is 1, so that whatever the pattern keeps every row of out must be 1. */
#include "driver.h"
#include "tensors.h"

#include <heddle/heddle.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kMostSizes = 8, kLaunches = 20 };

static driver cuda;

static int failed(const char *what, heddle_status status) {
  if (status != HEDDLE_OK)
    fprintf(stderr, "attention: %s: %s: %s\n", what, heddle_status_name(status), heddle_last_message());
  return status != HEDDLE_OK;
}

static int driver_failed(const char *what, driver_code code) {
  if (code != 0)
    fprintf(stderr, "attention: %s: the driver says %d\n", what, code);
  return code != 0;
}

enum { kOne = 0x3f80, kNaN = 0x7fff }; /* as bf16 */

/* q, k and v in one allocation each, out behind NaN: what a kernel leaves out shows. */
static int make_inputs(driver_pointer memory[4], size_t bytes) {
  uint16_t *host = malloc(bytes);
  const size_t count = bytes / sizeof *host;
  size_t i;
  int tensor, bad = !host;
  for (tensor = 0; tensor < 4 && !bad; ++tensor) {
    if (tensor < 2)
      fill_random(host, count, 7u + (uint32_t)tensor);
    else
      for (i = 0; i < count; ++i)
        host[i] = tensor == 2 ? kOne : kNaN;
    bad = driver_failed("allocate", cuda.allocate(&memory[tensor], bytes)) ||
          driver_failed("copy", cuda.to_device(memory[tensor], host, bytes, NULL)) || driver_failed("copy", cuda.synchronize(NULL));
  }
  free(host);
  return bad;
}

/* Every element must be 1: a row that keeps keys is a mean of ones. */
static int check_results(driver_pointer out, size_t bytes) {
  uint16_t *host = malloc(bytes);
  size_t i, wrong = 0;
  if (!host || driver_failed("copy", cuda.to_host(host, out, bytes, NULL)) || driver_failed("copy", cuda.synchronize(NULL))) {
    free(host);
    return 1;
  }
  for (i = 0; i < bytes / sizeof *host; ++i)
    wrong += host[i] != kOne;
  free(host);
  if (wrong > 0)
    fprintf(stderr, "attention: %lu elements of out are not 1\n", (unsigned long)wrong);
  return wrong > 0;
}

/* Memory that the kernel asks for beside inputs and outputs: most kernels ask for none. */
static int give_workspace(const heddle_kernel *kernel, heddle_attention_args *args) {
  driver_pointer memory = 0;
  if (failed("workspace", heddle_kernel_workspace(kernel, args, &args->workspace_bytes)))
    return 1;
  if (args->workspace_bytes > 0 && driver_failed("allocate", cuda.allocate(&memory, (size_t)args->workspace_bytes)))
    return 1;
  args->workspace = (void *)(uintptr_t)memory;
  return 0;
}

/* Microseconds of one launch, in the mean. Arguments are checked once, by heddle_prepare, which heddle_kernel_launch would do each time. */
static int launch(const heddle_kernel *kernel, const heddle_attention_args *args, float *microseconds) {
  heddle_prepared *prepared = NULL;
  void *begin = NULL, *end = NULL;
  int i, bad;
  if (failed("prepare", heddle_prepare(kernel, args, &prepared)))
    return 1;
  bad = driver_failed("event", cuda.create_event(&begin, 0)) || driver_failed("event", cuda.create_event(&end, 0)) ||
        failed("launch", heddle_prepared_launch(prepared, NULL)) || driver_failed("event", cuda.record(begin, NULL));
  for (i = 0; i < kLaunches && !bad; ++i)
    bad = failed("launch", heddle_prepared_launch(prepared, NULL));
  bad = bad || driver_failed("event", cuda.record(end, NULL)) || driver_failed("wait", cuda.synchronize(NULL)) ||
        driver_failed("time", cuda.elapsed(microseconds, begin, end));
  *microseconds *= 1000.0f / kLaunches;
  cuda.destroy_event(begin);
  cuda.destroy_event(end);
  heddle_prepared_close(prepared);
  return bad;
}

static int run(const heddle_kernel *kernel, int64_t length, const heddle_operand *sizes, int size_count) {
  const size_t bytes = (size_t)length * kHeads * kHeadDim * 2;
  driver_pointer memory[4] = {0, 0, 0, 0}, lse = 0;
  heddle_attention_args args;
  float microseconds = 0;
  int i, bad;
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  bad = make_inputs(memory, bytes) || driver_failed("allocate", cuda.allocate(&lse, (size_t)length * kHeads * sizeof(float)));
  args.q = make_tensor((void *)(uintptr_t)memory[0], length);
  args.k = make_tensor((void *)(uintptr_t)memory[1], length);
  args.v = make_tensor((void *)(uintptr_t)memory[2], length);
  args.out = make_tensor((void *)(uintptr_t)memory[3], length);
  args.lse = (float *)(uintptr_t)lse;
  args.operands = sizes;
  args.operand_count = (uint64_t)size_count;
  bad = bad || give_workspace(kernel, &args) || launch(kernel, &args, &microseconds) || check_results(memory[3], bytes);
  if (!bad)
    printf("%ld row%s of %d heads %s right, %.1f us a launch, %lu bytes of workspace\n", (long)length, length == 1 ? "" : "s", kHeads,
           length == 1 ? "is" : "are", microseconds,
           (unsigned long)args.workspace_bytes);
  for (i = 0; i < 4; ++i)
    cuda.release(memory[i]);
  cuda.release(lse);
  if (args.workspace)
    cuda.release((driver_pointer)(uintptr_t)args.workspace);
  return bad;
}

static int find_and_run(heddle_store *store, heddle_device *device, const char *pattern, int64_t length,
                        const heddle_operand *sizes, int size_count) {
  heddle_kernel_query query;
  heddle_kernel_info info;
  heddle_kernel *kernel = NULL;
  int bad;
  memset(&query, 0, sizeof query);
  query.struct_size = sizeof query;
  query.dtype = HEDDLE_BF16;
  query.pattern = pattern;
  query.head_dim = query.value_dim = kHeadDim;
  query.batch = 1, query.heads = query.kv_heads = kHeads, query.seqlen_q = length;
  if (failed("find", heddle_kernel_find(store, device, &query, &kernel)))
    return 1;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  bad = failed("info", heddle_kernel_get_info(kernel, &info));
  if (!bad)
    printf("%s: kernel %.12s for %s, %s\n", pattern, info.content_key, info.arch, info.median_us > 0 ? "tuned" : "not tuned");
  bad = bad || run(kernel, length, sizes, size_count);
  heddle_kernel_close(kernel);
  return bad;
}

int main(int argc, char **argv) {
  const int64_t length = argc > 3 ? strtoll(argv[3], NULL, 10) : 4096;
  heddle_operand sizes[kMostSizes];
  heddle_store *store = NULL;
  heddle_device *device = NULL;
  void *context = NULL;
  int i, bad;
  if (argc < 3 || argc > 4 + kMostSizes || length < 1) {
    fprintf(stderr, "usage: attention FILE PATTERN [LENGTH [SIZE...]]\n");
    return 2;
  }
  for (i = 4; i < argc; ++i) {
    sizes[i - 4].id = i - 4;
    sizes[i - 4].kind = HEDDLE_OPERAND_INT;
    sizes[i - 4].value.i64 = strtoll(argv[i], NULL, 10);
  }
  if (failed("open", heddle_store_open(argv[1], HEDDLE_OPEN_IMMUTABLE, &store)) || failed("open", heddle_device_open(0, &device)))
    return 3;
  bad = !driver_open(&cuda) || driver_failed("context", cuda.primary_context(&context, 0)) ||
        driver_failed("context", cuda.push_context(context)) ||
        find_and_run(store, device, argv[2], length, sizes, argc > 4 ? argc - 4 : 0);
  heddle_device_close(device);
  heddle_store_close(store);
  return bad;
}
