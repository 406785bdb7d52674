//===- device_arguments_test.cpp - refused arguments are named --------------===//
// Numbers in brackets are the promises of runtime/Include/heddle.h.
#include "device_fixture.h"
#include "runtime/Device/Arguments.h"

#include <functional>
#include <limits>

using namespace heddle;
using namespace heddle::test;

namespace {

Status check(const AttentionArgs &args) {
  static const CallRequirements needs = *CallRequirements::of(emptyPlan(), forwardRecord());
  CallInputs inputs;
  return checkArguments(needs, 132, args, inputs);
}

struct Case {
  std::function<void(ForwardCall &)> change;
  const char *message;
};

void checkCases(const std::vector<Case> &cases, StatusCode code) {
  for (const Case &bad : cases) {
    ForwardCall call;
    bad.change(call);
    Status status = check(call.args);
    CHECK_MESSAGE(status.code() == code, bad.message);
    CHECK_MESSAGE(status.message().find(bad.message) != std::string::npos, status.str());
  }
}

void *odd(uintptr_t value) { return reinterpret_cast<void *>(value); }

} // namespace

TEST_CASE("valid arguments pass") {
  ForwardCall call;
  CHECK_MESSAGE(check(call.args).isOk(), check(call.args).str());
  call.args.k.stride[0] = 0; // one set of keys for all batches
  CHECK(check(call.args).isOk());
  call.args.carry_out = static_cast<float *>(odd(0x6000000));
  call.args.carry_lse = static_cast<float *>(odd(0x7000004));
  CHECK(check(call.args).isOk());
}

TEST_CASE("kernels of the kind with fp32 results take out in fp32, and nothing else in it") {
  KernelRecord record = forwardRecord();
  record.kind = KindText{Kind(), DType::fp32}.str();
  CallRequirements needs = *CallRequirements::of(emptyPlan(), record);
  auto checkFloat = [&](const AttentionArgs &args) {
    CallInputs inputs;
    return checkArguments(needs, 132, args, inputs);
  };
  ForwardCall call;
  CHECK(checkFloat(call.args).message().find("out: dtype: expected fp32, got bf16") != std::string::npos);
  call.args.out.dtype = HEDDLE_FP32;
  CHECK_MESSAGE(checkFloat(call.args).isOk(), checkFloat(call.args).str());
  CHECK(check(call.args).message().find("out: dtype: expected bf16 as q, got fp32") != std::string::npos);
  call.args.out.stride[2] = 132; // 528 bytes in fp32; 264 in bf16 would be refused
  call.args.out.stride[1] = 8 * 132;
  call.args.out.stride[0] = 1000 * 8 * 132;
  CHECK_MESSAGE(checkFloat(call.args).isOk(), checkFloat(call.args).str());
  call.args.v.dtype = HEDDLE_FP32;
  CHECK(checkFloat(call.args).message().find("v: dtype: expected bf16 as q, got fp32") != std::string::npos);
}

TEST_CASE("gradients of arguments are those that the kernel writes, each once") {
  LaunchPlan plan = emptyPlan();
  for (int64_t argument : {1, 3})
    plan.launches.front().appendPointer(PointerSource::gradient(argument));
  const CallRequirements needs = *CallRequirements::of(plan, forwardRecord());
  std::vector<heddle_gradient> gradients = {{3, 0, static_cast<float *>(odd(0x80004))},
                                            {1, 0, static_cast<float *>(odd(0x90000))}};
  CallInputs inputs;
  const auto checkGradients = [&] {
    ForwardCall call;
    call.args.gradients = gradients.empty() ? nullptr : gradients.data();
    call.args.gradient_count = gradients.size();
    return checkArguments(needs, 132, call.args, inputs).message();
  };
  CHECK(checkGradients().empty());
  CHECK(inputs.pointer(PointerSource::gradient(1)) == odd(0x90000));
  CHECK(inputs.pointer(PointerSource::gradient(3)) == odd(0x80004));
  gradients[1].id = 3;
  CHECK(checkGradients().find("gradients: argument 3: is given twice") != std::string::npos);
  gradients[1].id = 2;
  CHECK(checkGradients().find("gradients: argument 2: this kernel does not write it") != std::string::npos);
  gradients[1] = {1, 0, static_cast<float *>(odd(0x90002))};
  CHECK(checkGradients().find("argument 1: expected device memory for floats, got an unaligned") != std::string::npos);
  gradients[1].ptr = nullptr;
  CHECK(checkGradients().find("argument 1: expected device memory for floats, got null") != std::string::npos);
  gradients.pop_back();
  CHECK(checkGradients().find("gradients: argument 1 is missing") != std::string::npos);
}

TEST_CASE("the stride of a dimension of size 1 is not looked at") {
  ForwardCall call;
  for (heddle_tensor *tensor : {&call.args.q, &call.args.k, &call.args.v, &call.args.out}) {
    tensor->size[0] = 1;
    tensor->stride[0] = -12345;
  }
  CHECK_MESSAGE(check(call.args).isOk(), check(call.args).str());
}

TEST_CASE("[5] sizes, dtypes and heads") {
  checkCases({{[](ForwardCall &c) { c.args.q.dtype = HEDDLE_FP16; }, "q: dtype: expected bf16, got fp16"},
              {[](ForwardCall &c) { c.args.v.dtype = 77; }, "v: dtype: expected bf16 as q, got number 77"},
              {[](ForwardCall &c) { c.args.q.size[3] = 128; }, "q: size of dim: expected 64, got 128"},
              {[](ForwardCall &c) { c.args.k.size[0] = 3; }, "k: size of batch: expected 2, got 3"},
              {[](ForwardCall &c) { c.args.v.size[1] = 2999; }, "v: size of row: expected 3000, got 2999"},
              {[](ForwardCall &c) { c.args.out.size[2] = 4; }, "out: size of head: expected 8, got 4"},
              {[](ForwardCall &c) { c.args.k.size[2] = c.args.v.size[2] = 3; },
               "k: size of head: expected a divisor of the 8 query heads, got 3"},
              {[](ForwardCall &c) { c.args.k.size[2] = c.args.v.size[2] = 0; },
               "k: size of head: expected a divisor of the 8 query heads, got 0"},
              {[](ForwardCall &c) { c.args.q.size[1] = -1; }, "q: size of row: expected 0 to 2^31 - 1, got -1"},
              {[](ForwardCall &c) { c.args.k.size[1] = int64_t(1) << 31; },
               "k: size of row: expected 0 to 2^31 - 1, got 2147483648"}},
             StatusCode::invalidArgument);
}

TEST_CASE("[5] addresses and strides") {
  checkCases({{[](ForwardCall &c) { c.args.q.ptr = nullptr; },
               "q: address: expected device memory at a multiple of 16 bytes, got null"},
              {[](ForwardCall &c) { c.args.out.ptr = odd(0x4000008); },
               "out: address: expected device memory at a multiple of 16 bytes, got remainder 8"},
              {[](ForwardCall &c) { c.args.k.stride[3] = 2; }, "k: stride of dim: expected 1, got 2"},
              {[](ForwardCall &c) { c.args.v.stride[2] = 129; },
               "v: stride of head: expected a multiple of 16 bytes, got 258 bytes (129 elements)"},
              {[](ForwardCall &c) { c.args.q.stride[1] = -512; }, "q: stride of row: expected 0 to 2^40, got -512"},
              {[](ForwardCall &c) { c.args.out.stride[1] = 0; },
               "out: stride of row: expected rows that do not overlap, got 0"},
              {[](ForwardCall &c) { c.args.q.stride[0] = int64_t(1) << 39; },
               "q: stride of batch: the tensor spans 2^40 bytes or more"},
              {[](ForwardCall &c) { c.args.q.stride[1] = int64_t(1) << 40; },
               "q: stride of row: the tensor spans 2^40 bytes or more"},
              {[](ForwardCall &c) { c.args.lse = nullptr; },
               "lse: address: expected device memory at a multiple of 4 bytes, got null"},
              {[](ForwardCall &c) { c.args.lse = static_cast<float *>(odd(0x5000002)); },
               "lse: address: expected device memory at a multiple of 4 bytes, got remainder 2"}},
             StatusCode::invalidArgument);
}

TEST_CASE("[5] scale, positions, carry and operands") {
  checkCases(
      {{[](ForwardCall &c) { c.args.scale = std::numeric_limits<float>::infinity(); },
        "scale: expected a finite number"},
       {[](ForwardCall &c) { c.args.scale = std::numeric_limits<float>::quiet_NaN(); },
        "scale: expected a finite number"},
       {[](ForwardCall &c) { c.args.scale = -1; }, "scale: expected a finite number above 0"},
       {[](ForwardCall &c) { c.args.q_origin = int64_t(1) << 31; },
        "q_origin: expected -1073741824 to 1073740824 for 1000 queries, got 2147483648"},
       {[](ForwardCall &c) { c.args.k_origin = -(int64_t(1) << 32); },
        "k_origin: expected -1073741824 to 1073738824 for 3000 keys, got -4294967296"},
       {[](ForwardCall &c) { c.args.q_origin = INT64_MAX; }, "got 9223372036854775807: positions lie in [-2^30, 2^30)"},
       {[](ForwardCall &c) { c.args.k_origin = INT64_MIN; },
        "got -9223372036854775808: positions lie in [-2^30, 2^30)"},
       {[](ForwardCall &c) { c.args.q_origin = (1 << 30) - 999; },
        "q_origin: expected -1073741824 to 1073740824 for 1000 queries, got 1073740825"},
       {[](ForwardCall &c) { c.args.k_origin = (1 << 30) - 2999; },
        "k_origin: expected -1073741824 to 1073738824 for 3000 keys, got 1073738825"},
       {[](ForwardCall &c) { c.args.q_origin = 3001 - (1 << 30) - 2; },
        "q_origin and k_origin: expected queries and keys within 1073741824 positions, got 1073741825, from "
        "-1073738825 to 2999"},
       {[](ForwardCall &c) { c.args.carry_out = c.args.lse; },
        "carry_lse: expected both carry_out and carry_lse or neither"},
       {[](ForwardCall &c) { c.args.operand_count = 1; }, "operands: run-time size number 1 is missing"},
       {[](ForwardCall &c) { c.operands[1].id = 0; }, "operands: run-time size number 0 is given twice"},
       {[](ForwardCall &c) { c.operands[1].id = 2; }, "operands: the pattern has no run-time size number 2"},
       {[](ForwardCall &c) { c.operands[1].id = -1; }, "operands: the pattern has no run-time size number -1"},
       {[](ForwardCall &c) { c.operands[1].kind = HEDDLE_OPERAND_POINTER; },
        "operands: the pattern has no pointer number 1"},
       {[](ForwardCall &c) { c.args.operands = nullptr; }, "operands: expected"},
       {[](ForwardCall &c) { c.args.struct_size = 8; },
        "struct_size: expected at least 336, at most 4096 and a multiple of 8, got 8; set it to the sizeof"}},
      StatusCode::invalidArgument);
}

TEST_CASE("[5] positions just inside the limit pass") {
  LaunchPlan plan = emptyPlan();
  plan.serves.qOrigin = QOriginRule::given;
  const auto check = [needs = *CallRequirements::of(plan, forwardRecord())](const AttentionArgs &args) {
    CallInputs inputs;
    return checkArguments(needs, 132, args, inputs);
  };
  ForwardCall call;
  call.args.q_origin = (1 << 30) - 1000;
  call.args.k_origin = (1 << 30) - 3000;
  CHECK_MESSAGE(check(call.args).isOk(), check(call.args).str());
  call.args.q_origin = call.args.k_origin = -(1 << 30);
  CHECK_MESSAGE(check(call.args).isOk(), check(call.args).str());
  call.args.q_origin = 3000 - (1 << 30);
  call.args.k_origin = 0;
  CHECK_MESSAGE(check(call.args).isOk(), check(call.args).str());
}

TEST_CASE(
    "[5] tensors of the pattern: a pointer that is missing, null, or nobody's; lengths only where a kernel asks") {
  LaunchPlan plan = emptyPlan();
  KernelLaunch &launch = plan.launches.front();
  launch.appendPointer(PointerSource::operand(2));
  launch.appendI32(LaunchExpr::param(3));
  launch.appendI32(LaunchExpr::param(5));
  const CallRequirements needs = *CallRequirements::of(plan, forwardRecord());
  auto refusal = [&](std::vector<heddle_operand> operands, int64_t rows) {
    ForwardCall call;
    call.args.q.size[1] = call.args.out.size[1] = rows;
    call.args.operands = operands.data();
    call.args.operand_count = operands.size();
    CallInputs inputs;
    return checkArguments(needs, 132, call.args, inputs).message();
  };
  auto size = [](int32_t id) { return heddle_operand{id, HEDDLE_OPERAND_INT, {}}; };
  auto pointer = [](int32_t id, uintptr_t address) {
    heddle_operand operand{id, HEDDLE_OPERAND_POINTER, {}};
    operand.value.ptr = odd(address);
    return operand;
  };
  const int64_t rows = ForwardCall().args.q.size[1];
  CHECK(refusal({size(0), size(1), size(3), size(5), pointer(2, 0x7000)}, rows) == "");
  // nobody asks for 2, but it exists
  CHECK(refusal({size(0), size(1), size(2), size(3), size(5), pointer(2, 0x7000)}, rows) == "");
  CHECK(refusal({size(0), size(1), size(3), size(5)}, rows).find("operands: pointer number 2 is missing") !=
        std::string::npos);
  CHECK(refusal({size(0), size(1), size(3), size(5), pointer(2, 0)}, rows)
            .find("operands: pointer number 2: expected device memory, got null") != std::string::npos);
  CHECK(refusal({size(0), size(1), size(3), size(5), pointer(2, 0)}, 0) == "");
  CHECK(refusal({size(0), size(1), size(3), pointer(2, 0x7000)}, rows).find("run-time size number 5 is missing") !=
        std::string::npos);
  CHECK(refusal({size(0), size(1), size(3), size(5), pointer(1, 0x7000)}, rows)
            .find("the pattern has no pointer number 1") != std::string::npos);
}

TEST_CASE("a run-time number is rounded to f32 and travels as its bits") {
  ForwardCall call;
  call.operands[1].kind = HEDDLE_OPERAND_FLOAT;
  call.operands[1].value.f64 = -2.5;
  const CallRequirements needs = *CallRequirements::of(emptyPlan(), forwardRecord());
  CallInputs inputs;
  REQUIRE(checkArguments(needs, 132, call.args, inputs).isOk());
  CHECK(inputs.runtimeSizes[1] == int32_t(0xc0200000));
}

TEST_CASE("gradients of q, k and v in one tensor of all three are apart, and rows that run into each other are not") {
  KernelRecord record = forwardRecord();
  record.kind = "backward";
  record.valueDim = 64;
  const CallRequirements needs = *CallRequirements::of(LaunchPlan(PlanService(Kind{KindBase::backward})), record);
  const int64_t rows = 1000, heads = 8, dim = 64;
  heddle_attention_args args = makeAttentionArgs();
  uintptr_t next = 0x1000000;
  for (heddle_tensor *tensor : {&args.q, &args.k, &args.v, &args.out, &args.d_out})
    *tensor = contiguousTensor(odd(next += 0x1000000), DType::bf16, {2, rows, heads, dim});
  args.lse = static_cast<float *>(odd(next += 0x1000000));
  int64_t third = 0;
  for (heddle_tensor *tensor : {&args.d_q, &args.d_k, &args.d_v}) {
    *tensor =
        contiguousTensor(odd(0x10000000 + uintptr_t(2 * third++ * heads * dim)), DType::bf16, {2, rows, heads, dim});
    tensor->stride[1] = 3 * heads * dim;
    tensor->stride[0] = rows * 3 * heads * dim;
  }
  const auto refusal = [&] {
    CallInputs inputs;
    const Status sizes = checkArguments(needs, 132, args, inputs);
    return sizes.isOk() ? checkMemory(needs, inputs).message() : sizes.message();
  };
  CHECK(refusal() == "");
  args.d_v.ptr = odd(reinterpret_cast<uintptr_t>(args.d_v.ptr) - 16);
  CHECK(refusal() ==
        "attention arguments: d_v: expected memory apart from d_k, got memory that begins 1008 bytes behind "
        "it");
}

TEST_CASE("[3] what no kernel serves must be zero") {
  static int32_t number = 0;
  checkCases(
      {{[](ForwardCall &c) { c.args.flags = 2; }, "no kernel serves flags yet"},
       {[](ForwardCall &c) { c.args.cu_seqlens_q = &number; }, "a call of kind forward has no cu_seqlens_q"},
       {[](ForwardCall &c) { c.args.cu_seqlens_k = &number; }, "a call of kind forward has no cu_seqlens_k"},
       {[](ForwardCall &c) { c.args.seqused_k = &number; }, "a call of kind forward has no seqused_k"},
       {[](ForwardCall &c) { c.args.page_table = &number; }, "a call of kind forward has no page_table"},
       {[](ForwardCall &c) { c.args.page_size = 16; }, "a call of kind forward has no page_size"},
       {[](ForwardCall &c) { c.args.sequences = 1; }, "a call of kind forward has no sequences"},
       {[](ForwardCall &c) { c.args.max_pages = 1; }, "a call of kind forward has no max_pages"},
       {[](ForwardCall &c) { c.args.tables = 1; }, "a call of kind forward has no tables"},
       {[](ForwardCall &c) { c.args.reserved = 1; }, "no kernel serves reserved yet"},
       {[](ForwardCall &c) { c.args.descale_k_stride[1] = 1; }, "no kernel serves descale_k yet"},
       {[](ForwardCall &c) { c.args.rng_seed = 1; }, "no kernel serves rng_seed yet"},
       {[](ForwardCall &c) { c.args.rng_offset = 1; }, "no kernel serves rng_offset yet"},
       {[](ForwardCall &c) { c.args.k.reserved = 1; }, "the reserved field of a tensor is not zero"},
       {[](ForwardCall &c) { c.operands[0].kind = heddle_operand_kind(4); }, "no kernel takes operands of kind 4"}},
      StatusCode::unsupported);
}

TEST_CASE("[1] elements that have no scales are given none") {
  static float scale = 0;
  checkCases({{[](ForwardCall &c) { c.args.descale_q = &scale; },
               "descale_q: expected null beside q of bf16, which has no scales"},
              {[](ForwardCall &c) { c.args.descale_v = &scale; },
               "descale_v: expected null beside v of bf16, which has no scales"}},
             StatusCode::invalidArgument);
}

TEST_CASE("[3] fields of a newer version of the struct must be zero") {
  ForwardCall call;
  struct Newer {
    AttentionArgs args;
    uint64_t added[2];
  } newer = {call.args, {0, 0}};
  newer.args.struct_size = sizeof(newer);
  CHECK(check(newer.args).isOk());
  newer.added[1] = 1;
  Status status = check(newer.args);
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("belongs to a field of a newer version") != std::string::npos);
}

TEST_CASE("a kernel of whole blocks takes keys from multiples of them on") {
  LaunchPlan plan = emptyPlan();
  plan.serves.keyOriginStep = 64;
  const CallRequirements needs = *CallRequirements::of(plan, forwardRecord());
  auto statusAt = [&](int64_t origin) {
    ForwardCall call;
    call.args.k_origin = origin;
    CallInputs inputs;
    return checkArguments(needs, 132, call.args, inputs);
  };
  for (int64_t origin : {0, 64, 6400, -128})
    CHECK(statusAt(origin).isOk());
  for (int64_t origin : {1, 63, 65, -1}) {
    Status status = statusAt(origin);
    CHECK(status.code() == StatusCode::invalidArgument);
    CHECK_MESSAGE(status.message().find("k_origin: expected a multiple of 64, got " + std::to_string(origin)) !=
                      std::string::npos,
                  status.str());
  }
}

TEST_CASE("a kernel whose gradients of parts of the keys do not sum up takes all keys, from position 0 on") {
  LaunchPlan plan = emptyPlan();
  plan.serves.keyOriginStep = 0;
  const CallRequirements needs = *CallRequirements::of(plan, forwardRecord());
  auto statusAt = [&](int64_t origin) {
    ForwardCall call;
    call.args.k_origin = origin;
    CallInputs inputs;
    return checkArguments(needs, 132, call.args, inputs);
  };
  CHECK(statusAt(0).isOk());
  for (int64_t origin : {64, -128}) {
    const Status status = statusAt(origin);
    CHECK(status.code() == StatusCode::unsupported);
    CHECK_MESSAGE(status.message().find("gradient(detached), and the delta of a branch needs all of its keys") !=
                      std::string::npos,
                  status.str());
  }
}

TEST_CASE("a pattern that says itself where query 0 stands refuses to be told otherwise") {
  auto statusOf = [&](QOriginRule rule, int64_t origin) {
    LaunchPlan plan = emptyPlan();
    plan.serves.qOrigin = rule;
    ForwardCall call;
    call.args.q_origin = origin;
    CallInputs inputs;
    return checkArguments(*CallRequirements::of(plan, forwardRecord()), 132, call.args, inputs);
  };
  const ForwardCall call;
  const int64_t end = call.args.k.size[1] - call.args.q.size[1];
  REQUIRE(end != 0);
  for (QOriginRule rule : {QOriginRule::start, QOriginRule::end, QOriginRule::given})
    CHECK(statusOf(rule, 0).isOk());
  CHECK(statusOf(QOriginRule::given, 5).isOk());
  CHECK(statusOf(QOriginRule::end, end).isOk());
  CHECK(statusOf(QOriginRule::start, 5)
            .message()
            .find("q_origin: expected 0, got 5; this pattern says itself where query 0 stands (start)") !=
        std::string::npos);
  CHECK(statusOf(QOriginRule::end, end + 1).code() == StatusCode::invalidArgument);
}

TEST_CASE("what a plan does not serve is refused by name, not ignored") {
  LaunchPlan plan = emptyPlan();
  plan.serves.roles = {Role::q, Role::k, Role::v, Role::out, Role::lse};
  ForwardCall call;
  CallInputs inputs;
  const CallRequirements needs = *CallRequirements::of(plan, forwardRecord());
  CHECK(checkArguments(needs, 132, call.args, inputs).isOk());
  alignas(16) float carry[4] = {};
  call.args.carry_out = call.args.carry_lse = carry;
  const Status status = checkArguments(needs, 132, call.args, inputs);
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("this kernel does not take carry_out; leave it null") != std::string::npos);
}
