// Patterns through libheddle's C interface, and attention on this machine's processors.
#include "library_fixture.h"

#include <clocale>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace heddle::test;

namespace {

heddle_tensor tensorOf(std::vector<float> &values, int64_t rows, int64_t heads, int64_t dim) {
  return {values.data(), HEDDLE_FP32, 0, {1, rows, heads, dim}, {rows * heads * dim, heads * dim, dim, 1}};
}

// One call on rows x heads x dim of fp32; values vary, and so do the results of different keys.
struct HostCall {
  int64_t rows, heads, dim;
  std::vector<float> q, k, v, out, lse;
  heddle_operand left = {0, HEDDLE_OPERAND_INT, {}};
  heddle_attention_args args = sized<heddle_attention_args>();

  HostCall(int64_t rows, int64_t heads, int64_t dim)
      : rows(rows), heads(heads), dim(dim), q(size_t(rows * heads * dim)), k(q.size()), v(q.size()), out(q.size(), NAN),
        lse(size_t(rows * heads), NAN) {
    for (size_t i = 0; i < q.size(); ++i) {
      q[i] = std::sin(float(i) * 0.37f);
      k[i] = std::cos(float(i) * 0.11f);
      v[i] = std::sin(float(i) * 0.05f);
    }
    args.q = tensorOf(q, rows, heads, dim), args.k = tensorOf(k, rows, heads, dim);
    args.v = tensorOf(v, rows, heads, dim), args.out = tensorOf(out, rows, heads, dim);
    args.lse = lse.data();
    left.value.i64 = 7;
    args.operands = &left;
    args.operand_count = 1;
  }

  float *at(std::vector<float> &values, int64_t row, int64_t head) {
    return values.data() + (row * heads + head) * dim;
  }

  // Keys row - 7 to row, in double precision.
  double expected(int64_t row, int64_t head, int64_t d) {
    double sum = 0, weighted = 0;
    for (int64_t key = std::max<int64_t>(row - 7, 0); key <= row; ++key) {
      double score = 0;
      for (int64_t i = 0; i < dim; ++i)
        score += double(at(q, row, head)[i]) * at(k, key, head)[i];
      const double weight = std::exp(score / std::sqrt(double(dim)));
      sum += weight;
      weighted += weight * at(v, key, head)[d];
    }
    return weighted / sum;
  }
};

} // namespace

TEST_CASE("[9] a pattern says what it is and what its arguments are") {
  PatternHandle pattern = parse(kWindowText);
  auto info = sized<heddle_pattern_info>();
  CHECK_OK(heddle_pattern_get_info(pattern.get(), &info));
  CHECK(std::string(info.name) == "near");
  CHECK(std::string(info.digest).size() == 64);
  CHECK(std::string(info.text).find("attn.window") != std::string::npos);
  CHECK(info.argument_count == 1);
  CHECK(info.takes_q_origin == 0);
  auto argument = sized<heddle_pattern_argument>();
  CHECK_OK(heddle_pattern_get_argument(pattern.get(), 0, &argument));
  CHECK(std::string(argument.name) == "left");
  CHECK(std::string(argument.type) == "i32");
  CHECK(std::string(argument.doc) == "keys before");
  CHECK(argument.kind == HEDDLE_OPERAND_INT);
  CHECK(argument.has_default == 1);
  CHECK(argument.default_int == 63);
  CHECK(argument.min_int == 0);
  CHECK_REFUSED(heddle_pattern_get_argument(pattern.get(), 1, &argument), HEDDLE_INVALID_ARGUMENT,
                "expected 0 to 0, got 1");
}

TEST_CASE("tensors and numbers among the arguments") {
  PatternHandle pattern = parse(
      R"(attn.pattern @packed(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %cap: f32 {attn.default = 30.5 : f32, attn.min = 1.0 : f32}) {
    %c = attn.causal
    %m = attn.documents %c at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>
    %s = attn.scaled
    %t = attn.softcap %s by %cap
    attn.softmax union(%m) of %t
  })");
  auto argument = sized<heddle_pattern_argument>();
  CHECK_OK(heddle_pattern_get_argument(pattern.get(), 0, &argument));
  CHECK(argument.kind == HEDDLE_OPERAND_POINTER);
  CHECK(argument.takes_length == 1);
  CHECK(std::string(argument.type) == "memref<?xi32>");
  CHECK_OK(heddle_pattern_get_argument(pattern.get(), 2, &argument));
  CHECK(argument.kind == HEDDLE_OPERAND_FLOAT);
  CHECK(argument.default_float == 30.5);
  CHECK(argument.min_float == 1.0);
  CHECK(std::isinf(argument.max_float));
}

TEST_CASE("what is no pattern is refused with its place") {
  heddle_pattern *pattern = nullptr;
  CHECK_REFUSED(heddle_pattern_parse("attn.pattern @p() { attn.softmax union(%x) }", "mine.mlir", nullptr, &pattern),
                HEDDLE_INVALID_ARGUMENT, "mine.mlir:1:");
  CHECK_REFUSED(heddle_pattern_parse(kWindowText, nullptr, "far", &pattern), HEDDLE_INVALID_ARGUMENT, "far");
  CHECK_REFUSED(heddle_pattern_read("/no/such.mlir", nullptr, &pattern), HEDDLE_INVALID_ARGUMENT, "/no/such.mlir");
  CHECK_REFUSED(heddle_pattern_parse(nullptr, nullptr, nullptr, &pattern), HEDDLE_INVALID_ARGUMENT,
                "text: expected an address, got null");
  CHECK_REFUSED(heddle_pattern_parse(kWindowText, nullptr, nullptr, nullptr), HEDDLE_INVALID_ARGUMENT,
                "pattern: expected an address, got null");
  CHECK(pattern == nullptr);
  auto old = sized<heddle_pattern_info>();
  old.struct_size = 8;
  PatternHandle good = parse(kWindowText);
  CHECK_REFUSED(heddle_pattern_get_info(good.get(), &old), HEDDLE_INVALID_ARGUMENT, "struct_size");
}

TEST_CASE("[1] what is refused writes nothing to the streams of the process") {
  ScratchFolder folder;
  const std::string path = folder / "streams";
  std::fflush(nullptr);
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600), out = ::dup(1), err = ::dup(2);
  REQUIRE(file >= 0);
  ::dup2(file, 1), ::dup2(file, 2);
  heddle_pattern *pattern = nullptr;
  std::vector<heddle_status> statuses;
  for (const char *text : {"attn.pattern @p() { attn.softmax union(%x) }", "attn.pattern @p(", "", "module {}",
                           "attn.pattern @p() { %m = attn.heads attn.softmax union(%m) }",
                           "attn.pattern @p(%l: i32) { %w = attn.window [%l, -4] attn.softmax union(%w) }"})
    statuses.push_back(heddle_pattern_parse(text, nullptr, nullptr, &pattern));
  statuses.push_back(heddle_pattern_read("/no/such.mlir", nullptr, &pattern));
  std::fflush(nullptr);
  ::dup2(out, 1), ::dup2(err, 2);
  for (int each : {file, out, err})
    ::close(each);
  for (heddle_status status : statuses)
    CHECK(status == HEDDLE_INVALID_ARGUMENT);
  CHECK(pattern == nullptr);
  CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("[11] information for callers of an older version ends where their struct does") {
  PatternHandle pattern = parse(kWindowText);
  heddle_pattern_info info;
  std::memset(&info, 0xee, sizeof info);
  info.struct_size = offsetof(heddle_pattern_info, text);
  CHECK_OK(heddle_pattern_get_info(pattern.get(), &info));
  CHECK(std::string(info.name) == "near");
  CHECK(reinterpret_cast<uintptr_t>(info.text) == 0xeeeeeeeeeeeeeeee);
  heddle_pattern_argument argument;
  std::memset(&argument, 0xee, sizeof argument);
  argument.struct_size = offsetof(heddle_pattern_argument, default_int);
  CHECK_OK(heddle_pattern_get_argument(pattern.get(), 0, &argument));
  CHECK(std::string(argument.doc) == "keys before");
  CHECK(uint64_t(argument.default_int) == 0xeeeeeeeeeeeeeeee);
}

TEST_CASE("[11] information for callers of a newer version ends in zeros") {
  PatternHandle pattern = parse(kWindowText);
  struct {
    heddle_pattern_info info;
    uint64_t added;
  } newer = {sized<heddle_pattern_info>(), 7};
  newer.info.struct_size = sizeof newer;
  CHECK_OK(heddle_pattern_get_info(pattern.get(), &newer.info));
  CHECK(newer.info.struct_size == sizeof newer);
  CHECK(std::string(newer.info.name) == "near");
  CHECK(newer.added == 0);
}

TEST_CASE("[12] a pattern that was closed is refused, closing it again does nothing") {
  heddle_pattern *pattern = parse(kWindowText).release();
  heddle_pattern_close(pattern);
  heddle_pattern_close(pattern);
  auto info = sized<heddle_pattern_info>();
  auto argument = sized<heddle_pattern_argument>();
  heddle_attention_args args = {};
  args.struct_size = sizeof args;
  CHECK_REFUSED(heddle_pattern_get_info(pattern, &info), HEDDLE_INVALID_ARGUMENT,
                "pattern info: pattern: this handle was closed");
  CHECK_REFUSED(heddle_pattern_get_argument(pattern, 0, &argument), HEDDLE_INVALID_ARGUMENT, "this handle was closed");
  CHECK_REFUSED(heddle_cpu_run(pattern, nullptr, &args, 1), HEDDLE_INVALID_ARGUMENT, "this handle was closed");
}

TEST_CASE("attention on the CPU is the softmax over the kept keys, from any thread") {
  PatternHandle pattern = parse(kWindowText);
  std::vector<std::thread> threads;
  std::vector<HostCall> calls;
  for (int64_t rows : {1, 37, 100})
    calls.emplace_back(rows, 2, 8);
  std::vector<heddle_status> results(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].args.operands = &calls[i].left; // where it moved to
    threads.emplace_back([&, i] { results[i] = heddle_cpu_run(pattern.get(), nullptr, &calls[i].args, 1); });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < calls.size(); ++i) {
    REQUIRE(results[i] == HEDDLE_OK);
    for (int64_t row = 0; row < calls[i].rows; ++row)
      for (int64_t head = 0; head < 2; ++head)
        for (int64_t d = 0; d < 8; ++d)
          REQUIRE(calls[i].at(calls[i].out, row, head)[d] ==
                  doctest::Approx(calls[i].expected(row, head, d)).epsilon(1e-5));
  }
}

TEST_CASE("[7] calls on the CPU without rows or heads do nothing") {
  PatternHandle pattern = parse(kWindowText);
  for (auto [rows, heads] : {std::pair(16, 0), std::pair(0, 2)}) {
    HostCall call(rows, heads, 8);
    CHECK_OK(heddle_cpu_run(pattern.get(), nullptr, &call.args, 0));
  }
}

TEST_CASE("numbers are passed on in any locale") {
  PatternHandle pattern = parse(R"(attn.pattern @capped(%cap: f32 {attn.min = 0.25 : f32}) {
    %m = attn.causal
    %s = attn.scaled
    %t = attn.softcap %s by %cap
    attn.softmax union(%m) of %t
  })");
  HostCall call(4, 2, 8);
  call.left.kind = HEDDLE_OPERAND_FLOAT, call.left.value.f64 = 0.5;
  const locale_t comma = newlocale(LC_NUMERIC_MASK, "de_DE.UTF-8", nullptr);
  if (!comma) {
    MESSAGE("skipped: this machine has no locale with a decimal comma");
    return;
  }
  const locale_t before = uselocale(comma);
  const heddle_status status = heddle_cpu_run(pattern.get(), nullptr, &call.args, 0);
  uselocale(before);
  freelocale(comma);
  CHECK_MESSAGE(status == HEDDLE_OK, std::string(heddle_last_message()));
}

TEST_CASE("a call on the CPU that does not fit is refused and named, and nothing is written") {
  PatternHandle pattern = parse(kWindowText);
  HostCall call(16, 2, 8);
  auto refused = [&](const char *words) {
    CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &call.args, 0), HEDDLE_INVALID_ARGUMENT, words);
    CHECK(std::isnan(call.out[0]));
    call.args = HostCall(16, 2, 8).args; // whose tensors are gone; sizes and strides count
    call.args.q.ptr = call.q.data(), call.args.k.ptr = call.k.data(), call.args.v.ptr = call.v.data(),
    call.args.out.ptr = call.out.data();
    call.args.lse = call.lse.data();
    call.args.operands = &call.left;
  };
  call.args.k.size[3] = 4;
  refused("k: size of dim: expected 8, got 4");
  call.args.out.dtype = HEDDLE_BF16;
  refused("out: dtype");
  call.args.v.stride[3] = 2;
  refused("v: stride of dim: expected 1, got 2");
  call.args.out.stride[2] = 0;
  refused("out: stride of head: expected rows that do not overlap, got 0");
  call.args.k.size[2] = call.args.v.size[2] = 3;
  refused("expected a divisor of the 2 query heads, got 3");
  call.args.v.ptr = nullptr;
  refused("v: address: expected host memory, got null");
  call.args.scale = NAN;
  refused("scale: expected a finite number above 0");
  call.args.scale = -1;
  refused("scale: expected a finite number above 0");
  call.left.kind = HEDDLE_OPERAND_POINTER;
  refused("operands: the pattern has no pointer number 0");
  call.left.kind = HEDDLE_OPERAND_INT;
  call.left.value.i64 = -5;
  refused("expected left >= 0, got -5");
  call.left.value.i64 = int64_t(1) << 31;
  refused("'left': expected at most 2^31 - 1, got 2147483648");
  call.left.value.i64 = 7, call.left.id = 3;
  refused("operands: the pattern has no run-time size number 3");
  call.left.id = 0, call.left.kind = HEDDLE_OPERAND_FLOAT, call.left.value.f64 = 7;
  refused("'left' is a i32");
  call.left.kind = HEDDLE_OPERAND_INT, call.left.value.i64 = 7;
  call.args.flags = 2;
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &call.args, 0), HEDDLE_UNSUPPORTED, "flags");
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, nullptr, 0), HEDDLE_INVALID_ARGUMENT,
                "args: expected an address");
  call.args.flags = 0;
  CHECK_REFUSED(heddle_cpu_run(pattern.get(), nullptr, &call.args, -1), HEDDLE_INVALID_ARGUMENT, "threads");
}
