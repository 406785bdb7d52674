/* compile DATABASE [LENGTH [LEFT]]: from the text of a pattern to its kernel, in C. Attention is computed on the processors first;
 * where there is a GPU the pattern is compiled for it, launched, and must give the same. DATABASE keeps what was compiled: a second
 * run finds it there. */
#include "driver.h"
#include "tensors.h"

#include <heddle/heddle_compiler.h>

#include <math.h>
#include <stdio.h>

static const char kText[] = "attn.pattern @near_and_first(%left: i32 {attn.default = 255 : i32}) {\n"
                            "  %window = attn.window [%left, 0]\n"
                            "  %first = attn.cols [0, 4]\n"
                            "  %causal = attn.causal\n"
                            "  %both = attn.or %window, %first\n"
                            "  %kept = attn.and %both, %causal\n"
                            "  attn.softmax union(%kept)\n"
                            "}\n";

static driver cuda;

static int failed(const char *what, heddle_status status) {
  if (status != HEDDLE_OK)
    fprintf(stderr, "compile: %s: %s: %s\n", what, heddle_status_name(status), heddle_last_message());
  return status != HEDDLE_OK;
}

static int driver_failed(const char *what, driver_code code) {
  if (code != 0)
    fprintf(stderr, "compile: %s: the driver says %d\n", what, code);
  return code != 0;
}

static float from_bf16(uint16_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

/* One call: tensors 0 to 3 are q, k, v and out. */
typedef struct call {
  uint16_t *host[4];
  driver_pointer memory[4], lse, workspace;
  size_t bytes; /* of a tensor */
  heddle_operand left;
  heddle_attention_args args;
} call;

/* The run-time size of the pattern: as asked, else (asked < 0) its default. */
static int choose_left(const heddle_pattern *pattern, int64_t asked, heddle_operand *left) {
  heddle_pattern_argument argument;
  memset(&argument, 0, sizeof argument);
  argument.struct_size = sizeof argument;
  if (failed("argument", heddle_pattern_get_argument(pattern, 0, &argument)))
    return 1;
  left->id = argument.id;
  left->kind = argument.kind;
  left->value.i64 = asked < 0 ? argument.default_int : asked;
  return 0;
}

static int make_call(int64_t length, call *made) {
  int i;
  made->bytes = (size_t)length * kHeads * kHeadDim * sizeof(uint16_t);
  for (i = 0; i < 4; ++i) {
    if (!(made->host[i] = malloc(made->bytes)))
      return 1;
    fill_random(made->host[i], made->bytes / sizeof(uint16_t), 7u + (uint32_t)i);
  }
  made->args.struct_size = sizeof made->args;
  made->args.operands = &made->left;
  made->args.operand_count = 1;
  made->args.q = make_tensor(made->host[0], length), made->args.k = make_tensor(made->host[1], length);
  made->args.v = make_tensor(made->host[2], length), made->args.out = make_tensor(made->host[3], length);
  return 0;
}

/* The same call with its tensors in device memory, out behind NaN: what a kernel leaves out shows. */
static int move_to_gpu(call *moved) {
  heddle_tensor *const tensors[4] = {&moved->args.q, &moved->args.k, &moved->args.v, &moved->args.out};
  uint16_t *nothing = malloc(moved->bytes);
  int i, bad = !nothing;
  if (nothing)
    memset(nothing, 0xff, moved->bytes);
  for (i = 0; i < 4 && !bad; ++i) {
    bad = driver_failed("allocate", cuda.allocate(&moved->memory[i], moved->bytes)) ||
          driver_failed("copy", cuda.to_device(moved->memory[i], i < 3 ? moved->host[i] : nothing, moved->bytes, NULL)) ||
          driver_failed("copy", cuda.synchronize(NULL));
    tensors[i]->ptr = (void *)(uintptr_t)moved->memory[i];
  }
  free(nothing);
  bad = bad || driver_failed("allocate", cuda.allocate(&moved->lse, moved->bytes / kHeadDim * 2)); /* a float for each row */
  moved->args.lse = (float *)(uintptr_t)moved->lse;
  return bad;
}

static int launch(const heddle_kernel *kernel, call *given) {
  heddle_attention_args *args = &given->args;
  if (failed("workspace", heddle_kernel_workspace(kernel, args, &args->workspace_bytes)) ||
      (args->workspace_bytes > 0 && driver_failed("allocate", cuda.allocate(&given->workspace, (size_t)args->workspace_bytes))))
    return 1;
  args->workspace = (void *)(uintptr_t)given->workspace;
  return failed("launch", heddle_kernel_launch(kernel, NULL, args));
}

/* Elements of out that are not what the processors computed, within the rounding of bf16 of values up to 2; -1: not read. */
static long count_wrong(const call *done) {
  uint16_t *out = malloc(done->bytes);
  long wrong = 0;
  size_t i;
  if (!out || driver_failed("copy", cuda.to_host(out, done->memory[3], done->bytes, NULL)) || driver_failed("copy", cuda.synchronize(NULL)))
    wrong = -1;
  for (i = 0; i < done->bytes / sizeof *out && wrong >= 0; ++i)
    wrong += !(fabsf(from_bf16(out[i]) - from_bf16(done->host[3][i])) <= 0.03f);
  free(out);
  return wrong;
}

static int compile_and_run(heddle_compiler *compiler, heddle_device *device, const heddle_pattern *pattern, call *given) {
  heddle_problem problem;
  heddle_kernel_info info;
  heddle_kernel *kernel = NULL;
  long wrong;
  memset(&problem, 0, sizeof problem), memset(&info, 0, sizeof info);
  problem.struct_size = sizeof problem, info.struct_size = sizeof info;
  problem.dtype = HEDDLE_BF16;
  problem.batch = 1, problem.heads = problem.kv_heads = kHeads, problem.head_dim = kHeadDim;
  problem.seqlen_q = problem.seqlen_k = given->args.q.size[1];
  problem.operands = given->args.operands, problem.operand_count = given->args.operand_count;
  if (failed("kernel", heddle_compiler_kernel(compiler, device, pattern, &problem, 0, &kernel)) ||
      failed("info", heddle_kernel_get_info(kernel, &info)))
    return 1;
  printf("kernel %.12s for %s, %s\n", info.content_key, info.arch, info.median_us > 0 ? "tuned" : "the default");
  wrong = move_to_gpu(given) || launch(kernel, given) ? -1 : count_wrong(given);
  heddle_kernel_close(kernel);
  if (wrong > 0)
    fprintf(stderr, "compile: %ld elements of the GPU's out are not those of the processors\n", wrong);
  if (wrong == 0)
    printf("the GPU agrees with the processors\n");
  return wrong != 0;
}

static int run_on_gpu(const char *database, const heddle_pattern *pattern, call *given) {
  heddle_compiler_options options;
  heddle_compiler *compiler = NULL;
  heddle_device *device = NULL;
  void *context = NULL;
  int bad;
  const heddle_status status = heddle_device_open(0, &device);
  if (status == HEDDLE_UNAVAILABLE) {
    printf("no GPU here: %s\n", heddle_last_message());
    return 0;
  }
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.database = database;
  bad = failed("device", status) || !driver_open(&cuda) || driver_failed("context", cuda.primary_context(&context, 0)) ||
        driver_failed("context", cuda.push_context(context)) || failed("compiler", heddle_compiler_open(&options, &compiler)) ||
        compile_and_run(compiler, device, pattern, given);
  heddle_compiler_close(compiler);
  heddle_device_close(device);
  return bad;
}

static void release(call *given) {
  int i;
  for (i = 0; i < 4; ++i) {
    free(given->host[i]);
    if (given->memory[i])
      cuda.release(given->memory[i]);
  }
  if (given->lse)
    cuda.release(given->lse);
  if (given->workspace)
    cuda.release(given->workspace);
}

int main(int argc, char **argv) {
  const int64_t length = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
  heddle_pattern *pattern = NULL;
  call given;
  int bad;
  memset(&given, 0, sizeof given);
  if (argc < 2 || argc > 4 || length < 1) {
    fprintf(stderr, "usage: compile DATABASE [LENGTH [LEFT]]\n");
    return 2;
  }
  bad = failed("pattern", heddle_pattern_parse(kText, NULL, NULL, &pattern)) ||
        choose_left(pattern, argc > 3 ? strtoll(argv[3], NULL, 10) : -1, &given.left) || make_call(length, &given) ||
        failed("processors", heddle_cpu_run(pattern, NULL, &given.args, 0));
  if (!bad)
    printf("%ld row%s of %d heads on the processors, left = %ld\n", (long)length, length == 1 ? "" : "s", kHeads, (long)given.left.value.i64);
  bad = bad || run_on_gpu(argv[1], pattern, &given);
  release(&given);
  heddle_pattern_close(pattern);
  return bad;
}
