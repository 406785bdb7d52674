// Gradients through libheddle's C interface: on this machine's processors against finite differences of
// heddle_cpu_run, and kernels of kind backward, compiled, filed, found and launched on the recording driver.
#include "support/Places.h"
#include "fake_cuda/FakeCuda.h"
#include "library_fixture.h"
#include "runtime/Include/heddle.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

extern "C" int cuMemAlloc_v2(unsigned long long *address, size_t bytes); // of the recording driver

using namespace heddle::test;
namespace api = heddle::api;

namespace {

constexpr int64_t kRows = 20, kKeys = 33, kHeads = 4, kKvHeads = 2, kDim = 8;

using Values = std::vector<float>;

Values waves(int64_t count, double step) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(std::sin(double(i) * step + 1));
  return values;
}

heddle_tensor tensorOf(Values &values, int64_t rows, int64_t heads) {
  return api::contiguous(values.data(), HEDDLE_FP32, {1, rows, heads, kDim});
}

// The loss is <out, dOut> + <lse, dLse> over lse that is finite.
struct HostCall {
  Values q = waves(kRows * kHeads * kDim, 0.37), k = waves(kKeys * kKvHeads * kDim, 0.11),
         v = waves(kKeys * kKvHeads * kDim, 0.05), out = Values(q.size()), lse = Values(kRows * kHeads),
         dOut = waves(kRows * kHeads * kDim, 0.71), dLse = waves(kRows * kHeads, 0.43), dQ = Values(q.size(), NAN),
         dK = Values(k.size(), NAN), dV = Values(v.size(), NAN);
  std::vector<heddle_operand> operands;
  std::vector<heddle_gradient> gradients;

  heddle_attention_args forward() {
    auto args = sized<heddle_attention_args>();
    args.q = tensorOf(q, kRows, kHeads), args.k = tensorOf(k, kKeys, kKvHeads), args.v = tensorOf(v, kKeys, kKvHeads);
    args.out = tensorOf(out, kRows, kHeads), args.lse = lse.data();
    args.operands = operands.data(), args.operand_count = operands.size();
    return args;
  }
  heddle_attention_args backward() {
    heddle_attention_args args = forward();
    args.d_out = tensorOf(dOut, kRows, kHeads), args.d_lse = dLse.data();
    args.d_q = tensorOf(dQ, kRows, kHeads), args.d_k = tensorOf(dK, kKeys, kKvHeads);
    args.d_v = tensorOf(dV, kKeys, kKvHeads);
    args.gradients = gradients.data(), args.gradient_count = gradients.size();
    return args;
  }

  double loss(const heddle_pattern *pattern) {
    const heddle_attention_args args = forward();
    CHECK_OK(heddle_cpu_run(pattern, nullptr, &args, 1));
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i)
      sum += double(out[i]) * dOut[i];
    for (size_t i = 0; i < lse.size(); ++i)
      sum += std::isfinite(lse[i]) ? double(lse[i]) * dLse[i] : 0;
    return sum;
  }
  void computeGradients(const heddle_pattern *pattern, int32_t threads = 2) {
    loss(pattern);
    const heddle_attention_args args = backward();
    CHECK_OK(heddle_cpu_run(pattern, "backward", &args, threads));
  }

  // Of some elements of what the loss depends on.
  void check(const heddle_pattern *pattern, Values &of, const Values &gradient) {
    constexpr float kStep = 1e-2f;
    for (size_t i = 0; i < of.size(); i += 1 + of.size() / 19) {
      const float value = of[i];
      of[i] = value + kStep;
      const double above = loss(pattern);
      of[i] = value - kStep;
      const double below = loss(pattern);
      of[i] = value;
      CAPTURE(i);
      CHECK(std::abs((above - below) / (2 * double(kStep)) - gradient[i]) <= 2e-3);
    }
  }
  void checkTensors(const heddle_pattern *pattern) {
    check(pattern, q, dQ);
    check(pattern, k, dK);
    check(pattern, v, dV);
  }

  void give(int32_t id, Values &tensor, Values &gradient) {
    operands.push_back({id, HEDDLE_OPERAND_POINTER, {tensor.data()}});
    gradients.push_back({id, 0, gradient.data()});
  }
};

constexpr const char *kScoresText =
    R"(attn.pattern @scores(%cap: f32 {attn.min = 0.5 : f32}, %bias: memref<1x?x?x?xf32>, %sinks: memref<?xf32>) {
  %w = attn.window [6, 2]
  %s = attn.scaled
  %b = attn.bias %s, %bias : memref<1x?x?x?xf32>
  %t = attn.softcap %b by %cap
  attn.softmax union(%w) of %t sink %sinks : memref<?xf32>
})";

} // namespace

TEST_CASE("gradients on the CPU are those of finite differences, rows that keep nothing give 0") {
  // Rows 0 to 2 keep nothing, nor do keys from 20 on.
  PatternHandle pattern = parse(R"(attn.pattern @late() {
  %w = attn.window [9, 0]
  %r = attn.rows [3, 0]
  %l = attn.not %r
  %m = attn.and %w, %l
  attn.softmax union(%m)
})");
  HostCall call;
  call.computeGradients(pattern.get());
  call.checkTensors(pattern.get());
  CHECK(call.dQ[0] == 0);
  CHECK(call.dK.back() == 0);
  CHECK(call.dV.back() == 0);
  const Values before = call.dK;
  call.computeGradients(pattern.get(), 1);
  CHECK(call.dK == before);
}

TEST_CASE("out and its gradient are read at their strides") {
  PatternHandle pattern = parse(kWindowText);
  HostCall call;
  heddle_operand left = {0, HEDDLE_OPERAND_INT, {}};
  left.value.i64 = 7;
  call.operands.push_back(left);
  call.computeGradients(pattern.get());
  const Values dQ = call.dQ, dK = call.dK;
  heddle_attention_args args = call.backward();
  Values turned[2];
  heddle_tensor *tensors[] = {&args.out, &args.d_out};
  for (int side : {0, 1}) { // [batch, heads, rows, dim]
    const Values &from = side ? call.dOut : call.out;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t row = 0; row < kRows; ++row)
        turned[side].insert(turned[side].end(), &from[size_t((row * kHeads + head) * kDim)],
                            &from[size_t((row * kHeads + head) * kDim)] + kDim);
    tensors[side]->ptr = turned[side].data();
    tensors[side]->stride[1] = kDim, tensors[side]->stride[2] = kRows * kDim;
  }
  CHECK_OK(heddle_cpu_run(pattern.get(), "backward", &args, 0));
  CHECK(call.dQ == dQ);
  CHECK(call.dK == dK);
}

TEST_CASE("numbers, tensors and sinks of a pattern have gradients") {
  PatternHandle pattern = parse(kScoresText);
  HostCall call;
  Values cap = {1.5f}, bias = waves(kHeads * kRows * kKeys, 0.21), sinks = waves(kHeads, 0.9);
  Values dCap(1, NAN), dBias(bias.size(), NAN), dSinks(sinks.size(), NAN);
  call.give(1, bias, dBias), call.give(2, sinks, dSinks);
  heddle_operand number = {0, HEDDLE_OPERAND_FLOAT, {}};
  number.value.f64 = cap[0];
  call.operands.push_back(number);
  call.gradients.push_back({0, 0, dCap.data()});
  call.computeGradients(pattern.get());
  call.checkTensors(pattern.get());
  call.check(pattern.get(), bias, dBias);
  call.check(pattern.get(), sinks, dSinks);
  double ends[2];
  for (int side : {0, 1}) {
    call.operands.back().value.f64 = double(cap[0]) + (side ? 1e-2 : -1e-2);
    ends[side] = call.loss(pattern.get());
  }
  CHECK(std::abs((ends[1] - ends[0]) / 2e-2 - dCap[0]) <= 2e-3);
}

TEST_CASE("a call backward without queries writes zeros") {
  PatternHandle pattern = parse("attn.pattern @all() { %m = attn.full attn.softmax union(%m) }");
  HostCall call;
  heddle_attention_args args = call.backward();
  for (heddle_tensor *tensor : {&args.q, &args.out, &args.d_out, &args.d_q})
    tensor->size[1] = 0;
  CHECK_OK(heddle_cpu_run(pattern.get(), "backward", &args, 0));
  CHECK(call.dK == Values(call.dK.size(), 0));
  CHECK(call.dV == Values(call.dV.size(), 0));
}

TEST_CASE("a call backward of no sequence writes zeros for what the pattern reads") {
  PatternHandle pattern = parse(kScoresText);
  Values bias(kHeads * kRows * kKeys), sinks(kHeads), dBias(bias.size(), NAN), dSinks(sinks.size(), NAN);
  HostCall call;
  call.give(1, bias, dBias), call.give(2, sinks, dSinks);
  call.operands.push_back({0, HEDDLE_OPERAND_FLOAT, {}});
  call.operands.back().value.f64 = 2;
  heddle_attention_args args = call.backward();
  for (heddle_tensor *tensor : {&args.q, &args.k, &args.v, &args.out, &args.d_out, &args.d_q, &args.d_k, &args.d_v})
    tensor->size[0] = 0;
  CHECK_OK(heddle_cpu_run(pattern.get(), "backward", &args, 0));
  CHECK(dBias == Values(bias.size(), 0));
  CHECK(dSinks == Values(sinks.size(), 0));
}

TEST_CASE("a call backward that does not fit is refused and named, and nothing is written") {
  PatternHandle pattern = parse(kScoresText);
  Values cap = {1.5f}, bias = waves(kHeads * kRows * kKeys, 0.21), sinks = waves(kHeads, 0.9), dBias(bias.size(), NAN);
  HostCall call;
  call.give(1, bias, dBias);
  call.operands.push_back({2, HEDDLE_OPERAND_POINTER, {sinks.data()}});
  call.operands.push_back({0, HEDDLE_OPERAND_FLOAT, {}});
  call.operands.back().value.f64 = cap[0];
  auto refused = [&](heddle_status code, const char *words,
                     const std::function<void(heddle_attention_args &)> &change) {
    heddle_attention_args args = call.backward();
    change(args);
    CHECK_REFUSED(heddle_cpu_run(pattern.get(), "backward", &args, 0), code, words);
    CHECK(std::isnan(call.dQ[0]));
    CHECK(std::isnan(dBias[0]));
  };
  refused(HEDDLE_INVALID_ARGUMENT, "lse: address: expected host memory, got null", [](auto &a) { a.lse = nullptr; });
  refused(HEDDLE_INVALID_ARGUMENT, "d_out: dtype: expected fp32 as q, got bf16",
          [](auto &a) { a.d_out.dtype = HEDDLE_BF16; });
  refused(HEDDLE_INVALID_ARGUMENT, "d_out: size of row: expected 20, got 19", [](auto &a) { a.d_out.size[1] = 19; });
  refused(HEDDLE_INVALID_ARGUMENT, "d_k: size of head: expected 2, got 4", [](auto &a) { a.d_k.size[2] = 4; });
  refused(HEDDLE_INVALID_ARGUMENT, "d_v: stride of row: expected rows that do not overlap, got 0",
          [](auto &a) { a.d_v.stride[1] = 0; });
  refused(HEDDLE_INVALID_ARGUMENT, "d_q: address: expected host memory, got null",
          [](auto &a) { a.d_q.ptr = nullptr; });
  refused(HEDDLE_INVALID_ARGUMENT, "k: size of head: expected a divisor of the 0 query heads", [](auto &a) {
    for (heddle_tensor *each : {&a.q, &a.out, &a.d_out, &a.d_q})
      each->size[2] = 0;
  });
  refused(HEDDLE_UNSUPPORTED, "a call of kind backward has no carry_out",
          [&](auto &a) { a.carry_out = call.out.data(); });
  refused(HEDDLE_INVALID_ARGUMENT, "gradients: expected at most 64 with an address",
          [](auto &a) { a.gradients = nullptr; });
  heddle_gradient gradient = {3, 0, dBias.data()};
  const auto wanted = [&](auto &a) { a.gradients = &gradient; };
  refused(HEDDLE_INVALID_ARGUMENT, "argument 3: pattern 'scores' has 3", wanted);
  gradient = {1, 0, nullptr};
  refused(HEDDLE_INVALID_ARGUMENT, "argument 1: expected host memory for floats, got null", wanted);
  gradient = {1, 1, dBias.data()};
  refused(HEDDLE_UNSUPPORTED, "argument 1: the reserved field is not zero", wanted);
  PatternHandle window = parse(kWindowText);
  gradient = {0, 0, dBias.data()};
  call.operands.clear();
  heddle_attention_args args = call.backward();
  args.gradients = &gradient;
  CHECK_REFUSED(heddle_cpu_run(window.get(), "backward", &args, 0), HEDDLE_INVALID_ARGUMENT,
                "scores of pattern 'near' have no derivative by argument 0");
}

TEST_CASE("[3] a forward call on the CPU takes no gradients") {
  PatternHandle pattern = parse(kWindowText);
  HostCall call;
  heddle_attention_args args = call.backward();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &args, 0), HEDDLE_UNSUPPORTED,
                "a call of kind forward has no d_out; leave it zero");
  args = call.forward();
  const heddle_gradient gradient = {0, 0, call.dQ.data()};
  args.gradients = &gradient, args.gradient_count = 1;
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &args, 0), HEDDLE_UNSUPPORTED,
                "a call of kind forward has no gradients");
}

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

// Addresses that nobody reads.
api::Arguments deviceCall() {
  api::Arguments args;
  uintptr_t next = 0x10000000;
  auto tensor = [&] { return api::contiguous(at(next += 0x1000000), HEDDLE_BF16, {1, 512, 4, 64}); };
  for (heddle_tensor *each : {&args.q, &args.k, &args.v, &args.out, &args.d_out, &args.d_q, &args.d_k, &args.d_v})
    *each = tensor();
  args.lse = static_cast<float *>(at(next += 0x1000000));
  args.size(0, 63);
  return args;
}

// Cleared before launches, so the driver has to know it.
void giveWorkspace(api::Arguments &args, uint64_t bytes) {
  unsigned long long address = 0;
  heddle::fake::fakeCudaSetCurrent(0);
  REQUIRE(cuMemAlloc_v2(&address, bytes + 256) == 0);
  args.workspace = at(uintptr_t(address + 255) / 256 * 256), args.workspace_bytes = bytes;
}

struct DeviceSession {
  ScratchFolder folder;
  std::string database = folder / "kernels.db";
  PatternHandle pattern = parse(kWindowText);
  DeviceHandle device;
  CompilerHandle compiler;
  heddle_problem problem = smallProblem();
  heddle_status status = HEDDLE_OK;

  DeviceSession() {
    setenv("HEDDLE_CUDA_DRIVER_LIBRARY", places().fakeCuda, 1);
    heddle::fake::fakeCudaReset();
    heddle_device *opened = nullptr;
    CHECK_OK(heddle_device_open(0, &opened));
    device.reset(opened);
    compiler = openCompiler(database);
    problem.kind = "backward";
  }
  KernelHandle find(uint32_t flags = 0) {
    heddle_kernel *found = nullptr;
    status = heddle_compiler_kernel(compiler.get(), device.get(), pattern.get(), &problem, flags, &found);
    return KernelHandle(found);
  }
  // What a machine without NVRTC cannot compile.
  bool isSkipped() const {
    if (status == HEDDLE_UNAVAILABLE)
      MESSAGE("skipped: " << heddle_last_message());
    return status == HEDDLE_UNAVAILABLE;
  }
};

int launches() {
  int count = 0;
  heddle::fake::fakeCudaLaunches(&count);
  return count;
}

} // namespace

TEST_CASE("a kernel backward is compiled, filed beside the forward one, found and launched") {
  DeviceSession session;
  KernelHandle kernel = session.find();
  if (session.isSkipped())
    return;
  REQUIRE_MESSAGE(session.status == HEDDLE_OK, std::string(heddle_last_message()));
  const std::string key = infoOf(kernel.get()).content_key;
  CHECK(infoOf(session.find(HEDDLE_ONLY_STORED).get()).content_key == key);
  CHECK(infoOf(session.find(HEDDLE_FIRST_SOON).get()).content_key == key);
  session.problem.kind = nullptr;
  CHECK(infoOf(session.find().get()).content_key != key);

  api::Arguments args = deviceCall();
  heddle_attention_args c = args.c();
  uint64_t bytes = 0;
  CHECK_OK(heddle_kernel_workspace(kernel.get(), &c, &bytes));
  giveWorkspace(args, bytes);
  c = args.c();
  CHECK_OK(heddle_kernel_launch(kernel.get(), nullptr, &c));
  const int perCall = launches();
  CHECK(perCall > 0);
  heddle_prepared *prepared = nullptr;
  args.d_lse = args.lse;
  c = args.c();
  c.flags = HEDDLE_WITHOUT_GRAPH;
  CHECK_OK(heddle_prepare(kernel.get(), &c, &prepared));
  CHECK_OK(heddle_prepared_launch(prepared, nullptr));
  CHECK(launches() == 2 * perCall);
  heddle_prepared_close(prepared);
}

TEST_CASE("a kernel whose bits do not depend on the run is not provisional: another one would have other bits") {
  DeviceSession session;
  session.problem.kind = "backward_deterministic";
  KernelHandle first = session.find(HEDDLE_FIRST_SOON);
  if (session.isSkipped())
    return;
  REQUIRE_MESSAGE(session.status == HEDDLE_OK, std::string(heddle_last_message()));
  CHECK(std::string(infoOf(first.get()).config).find("sm90_backward") != std::string::npos);
  CHECK(infoOf(session.find().get()).content_key == std::string(infoOf(first.get()).content_key));
}

TEST_CASE("the first kernel backward is there soon, a better one later") {
  DeviceSession session;
  KernelHandle first = session.find(HEDDLE_FIRST_SOON);
  if (session.isSkipped())
    return;
  REQUIRE_MESSAGE(session.status == HEDDLE_OK, std::string(heddle_last_message()));
  const std::string note = infoOf(first.get()).note, config = infoOf(first.get()).config;
  CHECK_MESSAGE(note.find("provisional") != std::string::npos, note);
  CHECK_MESSAGE(config.find("portable_backward") != std::string::npos, config);
  KernelHandle best = session.find();
  CHECK(std::string(infoOf(best.get()).config).find("sm90_backward") != std::string::npos);
}

TEST_CASE("a program without a compiler finds the kernel backward of a database, in C++") {
  DeviceSession session;
  session.find();
  if (session.isSkipped())
    return;
  auto store = api::Store::open(session.database);
  auto device = api::Device::open(0);
  REQUIRE(store);
  REQUIRE(device);
  api::Arguments args = deviceCall();
  api::Query query("near", args);
  CHECK(api::Kernel::find(*store, *device, query).status().code() == HEDDLE_NOT_FOUND); // none forward
  query.kind = "backward";
  auto kernel = api::Kernel::find(*store, *device, query);
  REQUIRE_MESSAGE(kernel, kernel.status().message());
  auto bytes = kernel->workspaceBytes(args);
  REQUIRE(bytes);
  giveWorkspace(args, *bytes);
  CHECK(kernel->launch(args).isOk());
  const int perCall = launches();
  auto prepared = kernel->prepare(args);
  REQUIRE_MESSAGE(prepared, prepared.status().message());
  CHECK(prepared->launch().isOk());

  auto refused = [&](const char *words, const std::function<void(api::Arguments &)> &change) {
    api::Arguments wrong = args;
    change(wrong);
    const int before = launches();
    const api::Status status = kernel->launch(wrong);
    CHECK_MESSAGE(status.message().find(words) != std::string::npos, status.message());
    CHECK(launches() == before);
  };
  CHECK(perCall > 0);
  refused("lse: address: expected device memory", [](auto &a) { a.lse = nullptr; });
  refused("d_out: size of row: expected 512, got 511", [](auto &a) { a.d_out.size[1] = 511; });
  refused("d_q: dtype: expected bf16 as q, got fp16", [](auto &a) { a.d_q.dtype = HEDDLE_FP16; });
  heddle_gradient gradient = {0, 0, args.lse};
  refused("gradients: argument 0: this kernel does not write it; one of kind backward_of_0 does",
          [&](auto &a) { a.gradients = &gradient, a.gradient_count = 1; });
}

TEST_CASE("gradients that no kernel serves are refused with what each lacks, and searches are for kinds that walk a "
          "pattern") {
  DeviceSession session;
  heddle_task *task = nullptr;
  auto refused = [&](const char *kind, heddle_status code, const char *words) {
    session.problem.kind = kind;
    CHECK_REFUSED(heddle_compiler_tune(session.compiler.get(), session.device.get(), session.pattern.get(),
                                       &session.problem, nullptr, nullptr, nullptr, &task),
                  code, words);
  };
  for (const char *kind : {"row_dot", "backward_fp32_out"})
    refused(kind, HEDDLE_UNSUPPORTED, "searches are for \"forward\" and the kinds of gradients");
  refused("backward_of_0", HEDDLE_INVALID_ARGUMENT, "scores and sinks have no derivative by argument 0");
  session.problem.kind = "backward";
  session.problem.head_dim = 4096;
  for (uint32_t flags : {0u, uint32_t(HEDDLE_FIRST_SOON)}) {
    CHECK(!session.find(flags));
    if (session.isSkipped())
      return;
    CHECK(session.status == HEDDLE_UNSUPPORTED);
    CHECK_MESSAGE(std::string(heddle_last_message()).find("4096") != std::string::npos,
                  std::string(heddle_last_message()));
  }
}
