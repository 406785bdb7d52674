// Calls of kind quantize through libheddle's C interface: on this machine's processors, and a kernel compiled, filed and
// launched on the recording driver.
#include "support/Places.h"
#include "fake_cuda/FakeCuda.h"
#include "library_fixture.h"
#include "runtime/Core/ElementConvert.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace heddle::test;

namespace {

constexpr int64_t kRows = 9, kHeads = 2, kDim = 32, kElements = kRows * kHeads * kDim;

heddle_tensor tensorOf(void *address, heddle_dtype dtype) {
  return {address, dtype, 0, {1, kRows, kHeads, kDim}, {kElements, kHeads * kDim, kDim, 1}};
}

struct QuantizeCall {
  std::vector<float> tensors[3], descales[3], mean = std::vector<float>(kHeads * kDim, NAN);
  std::vector<unsigned char> bytes[3];
  heddle_attention_args args = sized<heddle_attention_args>();

  QuantizeCall() {
    for (int i = 0; i < 3; ++i) {
      for (int64_t e = 0; e < kElements; ++e)
        tensors[i].push_back(std::sin(float(e) * 0.37f + float(i)));
      bytes[i].assign(kElements, 0x7f), descales[i].assign(kHeads, NAN);
    }
    args.q = tensorOf(tensors[0].data(), HEDDLE_FP32), args.k = tensorOf(tensors[1].data(), HEDDLE_FP32);
    args.v = tensorOf(tensors[2].data(), HEDDLE_FP32);
    args.quantized_q = tensorOf(bytes[0].data(), HEDDLE_E4M3),
    args.quantized_k = tensorOf(bytes[1].data(), HEDDLE_E4M3);
    args.quantized_v = tensorOf(bytes[2].data(), HEDDLE_E4M3);
    args.descale_q = descales[0].data(), args.descale_k = descales[1].data(), args.descale_v = descales[2].data();
  }

  float at(int tensor, int64_t row, int64_t head, int64_t dim) const {
    return tensors[tensor][size_t((row * kHeads + head) * kDim + dim)];
  }
};

} // namespace

TEST_CASE("on the processors: e4m3 tensors and scales, with or without the mean of k, and no other results") {
  const PatternHandle pattern = parse(kWindowText);
  QuantizeCall call;
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize", &call.args, 1));
  float largest = 0;
  double sum = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    sum += call.at(1, row, 1, 5);
    for (int64_t dim = 0; dim < kDim; ++dim)
      largest = std::max(largest, std::abs(call.at(2, row, 1, dim)));
  }
  CHECK(call.descales[2][1] == largest / 448);
  const std::vector<unsigned char> plain = call.bytes[1];
  call.args.k_mean = call.mean.data();
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize", &call.args, 1));
  CHECK(plain != call.bytes[1]);
  CHECK(call.mean[kDim + 5] == doctest::Approx(sum / kRows));
  const auto refused = [&](heddle_status code, const char *words, auto change) {
    heddle_attention_args bad = call.args;
    change(bad);
    CHECK_REFUSED(heddle_cpu_run(pattern.get(), "quantize", &bad, 1), code, words);
  };
  refused(HEDDLE_UNSUPPORTED, "a call of kind quantize has no out", [](auto &bad) { bad.out = bad.q; });
  refused(HEDDLE_INVALID_ARGUMENT, "quantized_v: dtype: expected e4m3, got fp32",
          [](auto &bad) { bad.quantized_v.dtype = HEDDLE_FP32; });
  refused(HEDDLE_INVALID_ARGUMENT, "quantized_k: size of row: expected 9, got 8",
          [](auto &bad) { bad.quantized_k.size[1] = 8; });
  refused(HEDDLE_INVALID_ARGUMENT, "quantized_q", [](auto &bad) { bad.quantized_q.ptr = bad.q.ptr; });
  refused(HEDDLE_UNSUPPORTED, "calls of kind quantize take bf16, fp16 or fp32, not e4m3", [&](auto &bad) {
    bad.q = tensorOf(call.tensors[0].data(), HEDDLE_E4M3), bad.k = tensorOf(call.tensors[1].data(), HEDDLE_E4M3);
    bad.v = tensorOf(call.tensors[2].data(), HEDDLE_E4M3);
  });
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &call.args, 1), HEDDLE_UNSUPPORTED,
                "a call of kind forward has no quantized_q");
  CHECK_REFUSED(
      heddle_cpu_run(pattern.get(), "row_dot", &call.args, 1), HEDDLE_UNSUPPORTED,
      "quantize, quantize_v_key_major, quantize_rotated, quantize_rotated_v_key_major, decode_invariant, got row_dot");
}

namespace {

using Elements = std::vector<float>;

/// Heads whose q and k have a channel that is 50 times as large as others. Scores are so small that weights are of several keys.
struct OutlierCall {
  static constexpr int64_t kRows = 96, kHeads = 8, kDim = 64, kCount = kRows * kHeads * kDim;
  static constexpr float kScale = 0.01f;
  Elements q, k, v, descales[3], signs;
  std::vector<unsigned char> bytes[3];

  OutlierCall() {
    std::mt19937 words(5);
    const auto normal = [&] { // a sum of uniforms, alike on every machine
      double sum = -6;
      for (int i = 0; i < 12; ++i)
        sum += double(words()) / 4294967296.0;
      return float(sum);
    };
    for (Elements *elements : {&q, &k, &v})
      for (int64_t i = 0; i < kCount; ++i)
        elements->push_back(normal() * (elements != &v && i % kDim == 5 ? 50.0f : 1.0f));
    for (int64_t c = 0; c < kDim; ++c)
      signs.push_back(words() >> 31 ? 1.0f : -1.0f);
    for (int i = 0; i < 3; ++i)
      bytes[i].assign(kCount, 0x7f), descales[i].assign(kHeads, NAN);
  }

  static heddle_tensor tensorOf(void *address, heddle_dtype dtype) {
    return {address, dtype, 0, {1, kRows, kHeads, kDim}, {kCount, kHeads * kDim, kDim, 1}};
  }

  /// What a forward call makes of the elements in e4m3.
  Elements attend(const heddle_pattern *pattern, const float *rotation) {
    auto args = sized<heddle_attention_args>();
    args.q = tensorOf(q.data(), HEDDLE_FP32), args.k = tensorOf(k.data(), HEDDLE_FP32);
    args.v = tensorOf(v.data(), HEDDLE_FP32);
    heddle_tensor *const low[] = {&args.quantized_q, &args.quantized_k, &args.quantized_v};
    for (int i = 0; i < 3; ++i)
      *low[i] = tensorOf(bytes[i].data(), HEDDLE_E4M3);
    args.descale_q = descales[0].data(), args.descale_k = descales[1].data(), args.descale_v = descales[2].data();
    args.rotation = rotation;
    CHECK_OK(heddle_cpu_run(pattern, rotation ? "quantize_rotated" : "quantize", &args, 1));
    auto forward = sized<heddle_attention_args>();
    forward.q = args.quantized_q, forward.k = args.quantized_k, forward.v = args.quantized_v;
    forward.descale_q = args.descale_q, forward.descale_k = args.descale_k, forward.descale_v = args.descale_v;
    Elements out(kCount), lse(kHeads * kRows);
    forward.scale = kScale;
    forward.out = tensorOf(out.data(), HEDDLE_FP32), forward.lse = lse.data();
    CHECK_OK(heddle_cpu_run(pattern, "forward_fp32_out", &forward, 1));
    return out;
  }

  static size_t at(int64_t row, int64_t head, int64_t dim) { return size_t((row * kHeads + head) * kDim + dim); }

  /// Root of the mean square of the differences from softmax(scale * q k^T) v in fp64, relative to that.
  double errorOf(const Elements &out) const {
    double error = 0, size = 0;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t row = 0; row < kRows; ++row) {
        const std::vector<double> wanted = outOf(row, head);
        for (int64_t c = 0; c < kDim; ++c) {
          const double difference = out[at(row, head, c)] - wanted[size_t(c)];
          error += difference * difference, size += wanted[size_t(c)] * wanted[size_t(c)];
        }
      }
    return std::sqrt(error / size);
  }

  std::vector<double> outOf(int64_t row, int64_t head) const {
    std::vector<double> weights, sums(kDim);
    for (int64_t key = 0; key < kRows; ++key) {
      double product = 0;
      for (int64_t c = 0; c < kDim; ++c)
        product += double(q[at(row, head, c)]) * k[at(key, head, c)];
      weights.push_back(product * double(kScale));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double &weight : weights)
      sum += weight = std::exp(weight - largest);
    for (int64_t key = 0; key < kRows; ++key)
      for (int64_t c = 0; c < kDim; ++c)
        sums[size_t(c)] += weights[size_t(key)] / sum * v[at(key, head, c)];
    return sums;
  }
};

} // namespace

TEST_CASE("where a channel of q and k stands out, a rotation makes attention in e4m3 far more exact") {
  const PatternHandle pattern = parse("attn.pattern @full() {\n  %m = attn.full\n  attn.softmax union(%m)\n}");
  OutlierCall call;
  const double plain = call.errorOf(call.attend(pattern.get(), nullptr));
  const double rotated = call.errorOf(call.attend(pattern.get(), call.signs.data()));
  INFO("errors " << plain << ", rotated " << rotated);
  CHECK(plain > 0.1);
  CHECK(rotated < 0.07);
  CHECK(rotated < plain / 3);
}

TEST_CASE("blocks of rows of q and k have scales of their own, which forward calls of that kind read") {
  const PatternHandle pattern = parse("attn.pattern @full() {\n  %m = attn.full\n  attn.softmax union(%m)\n}");
  OutlierCall call; // 96 rows: two blocks of 64
  for (int64_t c = 0; c < OutlierCall::kDim; ++c)
    call.q[OutlierCall::at(70, 3, c)] *= 8;
  auto args = sized<heddle_attention_args>();
  args.q = OutlierCall::tensorOf(call.q.data(), HEDDLE_FP32),
  args.k = OutlierCall::tensorOf(call.k.data(), HEDDLE_FP32);
  args.v = OutlierCall::tensorOf(call.v.data(), HEDDLE_FP32);
  args.quantized_q = OutlierCall::tensorOf(call.bytes[0].data(), HEDDLE_E4M3);
  args.quantized_k = OutlierCall::tensorOf(call.bytes[1].data(), HEDDLE_E4M3);
  args.quantized_v = OutlierCall::tensorOf(call.bytes[2].data(), HEDDLE_E4M3);
  std::vector<float> ofQ(OutlierCall::kHeads * 2, NAN), ofK = ofQ, ofV(OutlierCall::kHeads, NAN);
  args.descale_q = ofQ.data(), args.descale_k = ofK.data(), args.descale_v = ofV.data();
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize_scale_rows_64", &args, 1));
  float first = 0, second = 0;
  for (int64_t row = 0; row < OutlierCall::kRows; ++row)
    for (int64_t c = 0; c < OutlierCall::kDim; ++c)
      (row < 64 ? first : second) = std::max(row < 64 ? first : second, std::abs(call.q[OutlierCall::at(row, 3, c)]));
  CHECK(ofQ[6] == first / 448);
  CHECK(ofQ[7] == second / 448);
  CHECK(ofQ[7] > 2 * ofQ[6]);
  auto forward = sized<heddle_attention_args>();
  forward.q = args.quantized_q, forward.k = args.quantized_k, forward.v = args.quantized_v;
  forward.descale_q = args.descale_q, forward.descale_k = args.descale_k, forward.descale_v = args.descale_v;
  Elements out(OutlierCall::kCount), lse(OutlierCall::kHeads * OutlierCall::kRows), again(OutlierCall::kCount);
  forward.out = OutlierCall::tensorOf(out.data(), HEDDLE_FP32), forward.lse = lse.data();
  forward.scale = OutlierCall::kScale / 8;
  CHECK_OK(heddle_cpu_run(pattern.get(), "forward_fp32_out_scale_rows_64", &forward, 1));
  Elements dense[3] = {call.q, call.k, call.v}; // the elements with their scales, in fp32
  for (int64_t row = 0; row < OutlierCall::kRows; ++row)
    for (int64_t head = 0; head < OutlierCall::kHeads; ++head)
      for (int64_t c = 0; c < OutlierCall::kDim; ++c) {
        const size_t at = OutlierCall::at(row, head, c);
        const float scales[] = {ofQ[size_t(head * 2 + row / 64)], ofK[size_t(head * 2 + row / 64)], ofV[size_t(head)]};
        for (int i = 0; i < 3; ++i)
          dense[i][at] = heddle::e4m3ToFloat(call.bytes[i][at]) * scales[i];
      }
  forward.q = OutlierCall::tensorOf(dense[0].data(), HEDDLE_FP32), forward.k = forward.v = forward.q;
  forward.k.ptr = dense[1].data(), forward.v.ptr = dense[2].data();
  forward.descale_q = forward.descale_k = forward.descale_v = nullptr;
  forward.out.ptr = again.data();
  CHECK_OK(heddle_cpu_run(pattern.get(), "forward", &forward, 1));
  double most = 0;
  for (size_t i = 0; i < out.size(); ++i)
    most = std::max(most, double(std::abs(out[i] - again[i])));
  CHECK(most < 1e-5);
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "forward_scale_rows_64", &forward, 1), HEDDLE_UNSUPPORTED,
                "serves scales of blocks of rows beside q, k and v of e4m3, not beside fp32, fp32 and fp32");
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "decode_scale_rows_64", &forward, 1), HEDDLE_UNSUPPORTED,
                "serves scales of heads, not of blocks of 64 rows");
  ofQ[7] = -1;
  forward.q = args.quantized_q, forward.k = args.quantized_k, forward.v = args.quantized_v;
  forward.descale_q = ofQ.data();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "forward_fp32_out_scale_rows_64", &forward, 1), HEDDLE_INVALID_ARGUMENT,
                "descale_q: element 7: expected a finite number above 0");
}

TEST_CASE("a rotation is of signs, one for each channel of q and k, and is apart from what is written") {
  const PatternHandle pattern = parse(kWindowText);
  QuantizeCall call;
  Elements signs(kHeads * kDim, 1); // the first kDim of them
  call.args.rotation = signs.data();
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize_rotated", &call.args, 1));
  const std::vector<unsigned char> ofOnes = call.bytes[0], values = call.bytes[2];
  signs[3] = -1;
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize_rotated", &call.args, 1));
  CHECK(ofOnes != call.bytes[0]);
  CHECK(values == call.bytes[2]);
  signs[7] = 0.5f;
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "quantize_rotated", &call.args, 1), HEDDLE_INVALID_ARGUMENT,
                "rotation: element 7: expected 1 or -1, got 0.5");
  signs[7] = 1;
  call.args.k_mean = signs.data();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "quantize_rotated", &call.args, 1), HEDDLE_INVALID_ARGUMENT,
                "k_mean: expected memory apart from rotation");
  call.args.k_mean = nullptr, call.args.rotation = nullptr;
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "quantize_rotated", &call.args, 1), HEDDLE_INVALID_ARGUMENT, "rotation");
  call.args.rotation = signs.data();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "quantize", &call.args, 1), HEDDLE_UNSUPPORTED,
                "a call of kind quantize has no rotation");
  auto forward = sized<heddle_attention_args>();
  forward.q = call.args.q, forward.k = call.args.k, forward.v = call.args.v, forward.rotation = signs.data();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &forward, 1), HEDDLE_UNSUPPORTED,
                "a call of kind forward has no rotation");
}

TEST_CASE("on a GPU: one launch, with a workspace for counters and sums of columns; lengths of 0 leave tensors out") {
  setenv("HEDDLE_CUDA_DRIVER_LIBRARY", places().fakeCuda, 1);
  heddle::fake::fakeCudaReset();
  heddle::fake::fakeCudaSetPageable(1); // its clears reach the workspace
  const ScratchFolder folder;
  const PatternHandle pattern = parse(kWindowText);
  const CompilerHandle compiler = openCompiler(folder / "kernels.db");
  heddle_device *opened = nullptr;
  CHECK_OK(heddle_device_open(0, &opened));
  const DeviceHandle device(opened);
  heddle_problem problem = smallProblem();
  problem.kind = "quantize", problem.dtype = HEDDLE_FP32, problem.head_dim = problem.value_dim = kDim;
  heddle_kernel *found = nullptr;
  const heddle_status status = heddle_compiler_kernel(compiler.get(), device.get(), pattern.get(), &problem, 0, &found);
  const KernelHandle kernel(found);
  if (status == HEDDLE_UNAVAILABLE) {
    MESSAGE("skipped: " << heddle_last_message());
    return;
  }
  CHECK_OK(status);
  CHECK(infoOf(kernel.get()).spill_bytes == 0);
  const auto compiled = [&](const char *kind, heddle_dtype dtype) {
    problem.kind = kind, problem.dtype = dtype;
    CHECK_OK(heddle_compiler_kernel(compiler.get(), device.get(), pattern.get(), &problem, HEDDLE_FIRST_SOON, &found));
    return KernelHandle(found);
  };
  const KernelHandle rotating = compiled("quantize_rotated", HEDDLE_FP32);
  CHECK(infoOf(rotating.get()).spill_bytes == 0);
  for (const char *kind : {"quantize", "quantize_rotated", "quantize_scale_rows_64", "quantize_rotated_scale_rows_128"})
    CHECK(infoOf(compiled(kind, HEDDLE_BF16).get()).spill_bytes == 0);
  const KernelHandle ofBlocks = compiled("quantize_scale_rows_64", HEDDLE_FP32);
  problem.head_dim = problem.value_dim = 512;
  CHECK(infoOf(compiled("quantize_rotated", HEDDLE_BF16).get()).spill_bytes == 0);
  QuantizeCall call;
  char *const base = reinterpret_cast<char *>(uintptr_t(0x10000000));
  int place = 0;
  for (heddle_tensor *tensor : {&call.args.q, &call.args.k, &call.args.v, &call.args.quantized_q,
                                &call.args.quantized_k, &call.args.quantized_v})
    tensor->ptr = base + 0x10000 * ++place;
  for (const float **scales : {&call.args.descale_q, &call.args.descale_k, &call.args.descale_v})
    *scales = reinterpret_cast<float *>(base + 0x10000 * ++place);
  uint64_t bytes = 0;
  CHECK_OK(heddle_kernel_workspace(kernel.get(), &call.args, &bytes));
  constexpr int64_t kPieces = 3 * kHeads; // each head is one; those that are read again, and what was found in each
  CHECK(bytes == 256 + 16 * kHeads * kDim + 256 + 4 * kPieces); // behind counters of heads, a ticket, and columns
  alignas(256) static unsigned char workspace[4096];
  std::fill_n(workspace, sizeof workspace, 0xff);
  call.args.workspace = workspace, call.args.workspace_bytes = bytes;
  const auto launchesOf = [&](const heddle_attention_args &args, const heddle_kernel *launched) {
    int before = 0, after = 0;
    heddle::fake::fakeCudaLaunches(&before);
    CHECK_OK(heddle_kernel_launch(launched, nullptr, &args));
    heddle::fake::fakeCudaLaunches(&after);
    return after - before;
  };
  CHECK(launchesOf(call.args, kernel.get()) == 1);
  CHECK(workspace[0] + workspace[175] + workspace[256] + workspace[bytes - 1] == 0);
  CHECK(workspace[176] + workspace[bytes] == 2 * 0xff);
  uint64_t bytesOfBlocks = 0; // also what blocks know of columns; of one block a head here
  CHECK_OK(heddle_kernel_workspace(ofBlocks.get(), &call.args, &bytesOfBlocks));
  CHECK(bytesOfBlocks == bytes + 8 * kHeads * kDim);
  call.args.workspace_bytes = bytesOfBlocks;
  CHECK(launchesOf(call.args, ofBlocks.get()) == 1);
  call.args.workspace_bytes = bytes;
  call.args.k_mean = reinterpret_cast<float *>(base + 0x10000 * ++place);
  CHECK(launchesOf(call.args, kernel.get()) == 1);
  call.args.q.size[1] = call.args.quantized_q.size[1] = 0;
  CHECK(launchesOf(call.args, kernel.get()) == 1);
  call.args.rotation = reinterpret_cast<float *>(base + 0x10000 * ++place);
  CHECK(launchesOf(call.args, rotating.get()) == 1);
  CHECK_REFUSED(heddle_kernel_launch(kernel.get(), nullptr, &call.args), HEDDLE_UNSUPPORTED,
                "a call of kind quantize has no rotation");
  call.args.rotation = reinterpret_cast<float *>(base + 0x10000 * place + 4);
  CHECK_REFUSED(heddle_kernel_launch(rotating.get(), nullptr, &call.args), HEDDLE_INVALID_ARGUMENT,
                "rotation: address: expected device memory at a multiple of 16 bytes");
  call.args.rotation = nullptr;
  call.args.k_mean = const_cast<float *>(call.args.descale_v);
  CHECK_REFUSED(heddle_kernel_launch(kernel.get(), nullptr, &call.args), HEDDLE_INVALID_ARGUMENT, "k_mean");
}

TEST_CASE("values that are written key-major, with rows of their own strides, are read as they lie") {
  const PatternHandle pattern = parse(kWindowText);
  QuantizeCall plain, turned;
  constexpr int64_t kRow = 16; // of 9 keys
  std::vector<unsigned char> values(size_t(kHeads * kDim * kRow), 0x7f);
  heddle_tensor &v = turned.args.quantized_v;
  v.ptr = values.data();
  const int64_t sizes[4] = {1, kDim, kHeads, kRows}, strides[4] = {kHeads * kDim * kRow, kRow, kDim * kRow, 1};
  std::copy_n(sizes, 4, v.size), std::copy_n(strides, 4, v.stride);
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize", &plain.args, 1));
  CHECK_OK(heddle_cpu_run(pattern.get(), "quantize_v_key_major", &turned.args, 1));
  CHECK(turned.descales[2] == plain.descales[2]);
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t dim = 0; dim < kDim; ++dim)
      for (int64_t row = 0; row < kRow; ++row)
        CHECK(values[size_t((head * kDim + dim) * kRow + row)] ==
              (row < kRows ? plain.bytes[2][size_t((row * kHeads + head) * kDim + dim)] : 0x7f));
  Elements results[2];
  for (int i = 0; i < 2; ++i) {
    const heddle_attention_args &from = i ? turned.args : plain.args;
    auto args = sized<heddle_attention_args>();
    Elements lse(kHeads * kRows);
    results[i].resize(kElements);
    args.q = from.quantized_q, args.k = from.quantized_k, args.v = from.quantized_v;
    args.descale_q = from.descale_q, args.descale_k = from.descale_k, args.descale_v = from.descale_v;
    args.out = tensorOf(results[i].data(), HEDDLE_FP32), args.lse = lse.data();
    CHECK_OK(heddle_cpu_run(pattern.get(), i ? "forward_v_key_major_fp32_out" : "forward_fp32_out", &args, 1));
    if (i) {
      args.v.size[3] = kRows - 1;
      CHECK_REFUSED(heddle_cpu_run(pattern.get(), "forward_v_key_major_fp32_out", &args, 1), HEDDLE_INVALID_ARGUMENT,
                    "v: size of row: expected 9, got 8");
      args.v = from.quantized_v, args.v.stride[3] = 2;
      CHECK_REFUSED(heddle_cpu_run(pattern.get(), "forward_v_key_major_fp32_out", &args, 1), HEDDLE_INVALID_ARGUMENT,
                    "v: stride of row: expected 1, got 2; make the tensor contiguous in row");
    }
  }
  CHECK(results[0] == results[1]);
  auto wide = sized<heddle_attention_args>();
  Elements out(kElements), lse(kHeads * kRows);
  wide.q = plain.args.q, wide.k = plain.args.k, wide.v = plain.args.v;
  wide.out = tensorOf(out.data(), HEDDLE_FP32), wide.lse = lse.data();
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), "forward_v_key_major", &wide, 1), HEDDLE_UNSUPPORTED,
                "serves v that lies key-major beside q, k and v of e4m3, not beside fp32, fp32 and fp32");
}
