// Kernels of parts of a call: their defaults are those of the whole, and none cuts rows where that is asked for.
#include "library_session.h"

using namespace heddle::test;

namespace {

constexpr const char *kGlobal = "attn.pattern @p() { %w = attn.window [8, 8] %r = attn.rows [4, 0] %m = attn.or %w, %r "
                                "attn.softmax union(%m) }";

// Of a part, how long the whole is, as its last two arguments.
struct Problem {
  heddle_operand wholes[2] = {};
  heddle_problem problem = smallProblem();
  explicit Problem(const heddle_pattern *pattern, int64_t headDim = 64) {
    auto info = sized<heddle_pattern_info>();
    CHECK_OK(heddle_pattern_get_info(pattern, &info));
    for (int32_t i = 0; i < 2; ++i)
      wholes[i].id = info.argument_count - 2 + i, wholes[i].kind = HEDDLE_OPERAND_INT, wholes[i].value.i64 = 512;
    problem.head_dim = headDim;
    problem.operands = wholes, problem.operand_count = 2;
  }
};

std::string configOf(Session &session, uint32_t flags) {
  const Problem of(session.pattern.get());
  return infoOf(session.found(flags, of.problem).get()).config;
}

bool hasField(const std::string &config, const std::string &field) {
  return config.find("\n" + field + "\n") != std::string::npos;
}

PatternHandle partOf(const char *text) {
  heddle_pattern *part = nullptr;
  CHECK_OK(heddle_pattern_part(parse(text).get(), &part));
  return PatternHandle(part);
}

} // namespace

TEST_CASE(
    "parts of a pattern with global rows cut them as the whole does, but for calls that ask for rows as they are") {
  if (!start())
    return;
  Session session;
  session.pattern = partOf(kGlobal);
  const std::string cut = configOf(session, 0);
  CHECK_MESSAGE(hasField(cut, "split_tiles=96"), cut);
  CHECK(hasField(cut, "raster_reversed=0"));
  const int before = counting_nvrtc_compilations();
  KernelHandle none;
  const Problem of(session.pattern.get());
  CHECK(session.find(HEDDLE_BATCH_INVARIANT | HEDDLE_ONLY_STORED, none, of.problem) == HEDDLE_NOT_FOUND);
  const std::string invariant = configOf(session, HEDDLE_BATCH_INVARIANT);
  CHECK_MESSAGE(hasField(invariant, "split_tiles=0"), invariant);
  CHECK(configOf(session, HEDDLE_BATCH_INVARIANT | HEDDLE_FIRST_SOON) == invariant);
  CHECK(counting_nvrtc_compilations() == before + 1);
  CHECK(configOf(session, 0) == cut); // what is not cut is no default
  session.pattern = parse(kGlobal);
  CHECK(infoOf(session.found(0).get()).config == cut);
}

TEST_CASE("bits of a row that is not cut do not depend on others, and bits of gradients not on the run") {
  if (!start())
    return;
  Session soon;
  soon.pattern = partOf(kGlobal);
  CHECK(configOf(soon, HEDDLE_BATCH_INVARIANT | HEDDLE_FIRST_SOON) ==
        configOf(soon, HEDDLE_BATCH_INVARIANT)); // no other one meanwhile
  for (const char *text : {kGlobal, kWindowText, "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }"}) {
    Session session;
    session.pattern = partOf(text);
    for (int64_t headDim : {64, 128}) {
      const Problem of(session.pattern.get(), headDim);
      const std::string config = infoOf(session.found(HEDDLE_BATCH_INVARIANT, of.problem).get()).config;
      CAPTURE(config);
      CHECK(hasField(config, "split_tiles=0"));
      CHECK(hasField(config, "softmax=2"));
      CHECK(hasField(config, "rescale_threshold=8"));
      CHECK((hasField(config, "block_n=64") || hasField(config, "block_n=128")));
    }
    Problem of(session.pattern.get());
    of.problem.kind = "backward_accumulate";
    const std::string config = infoOf(session.found(HEDDLE_BATCH_INVARIANT, of.problem).get()).config;
    CHECK_MESSAGE((hasField(config, "reduce=2") || hasField(config, "reduce=3")), config);
  }
}

TEST_CASE("parts of a window are computed as the whole is, by blocks that take what is left") {
  if (!start())
    return;
  Session session;
  session.pattern = partOf(kWindowText);
  const Problem of(session.pattern.get(), 128);
  const std::string part = infoOf(session.found(0, of.problem).get()).config;
  CHECK_MESSAGE(hasField(part, "turn_taking=0"), part);
  CHECK(hasField(part, "grid=3"));
  session.pattern = parse(kWindowText);
  auto problem = smallProblem();
  problem.head_dim = 128;
  const std::string whole = infoOf(session.found(0, problem).get()).config;
  CHECK(hasField(whole, "turn_taking=0"));
  CHECK(hasField(whole, "grid=1"));
}

namespace {

// Of calls over keys in pages.
struct Sequences {
  Session session;
  heddle_problem problem = smallProblem();

  heddle_status find(const char *kind, uint32_t flags, KernelHandle &kernel) {
    problem.kind = kind;
    return session.find(flags, kernel, problem);
  }
  heddle_kernel_info found(const char *kind, uint32_t flags, KernelHandle &kernel) {
    CHECK_OK(find(kind, flags, kernel));
    return infoOf(kernel.get());
  }
  std::string keyOf(const char *kind, uint32_t flags) {
    KernelHandle kernel;
    return found(kind, flags, kernel).content_key;
  }
};

} // namespace

TEST_CASE("sequences whose bits do not depend on others are of a kind of their own, whatever is stored of decode") {
  if (!start())
    return;
  Sequences of;
  const std::string other = of.keyOf("decode", 0);
  CHECK(of.keyOf("decode", HEDDLE_ONLY_STORED) == other);
  KernelHandle kernel;
  CHECK_REFUSED(of.find("decode", HEDDLE_BATCH_INVARIANT | HEDDLE_ONLY_STORED, kernel), HEDDLE_NOT_FOUND,
                "decode_invariant");
  const int before = counting_nvrtc_compilations();
  const heddle_kernel_info info = of.found("decode", HEDDLE_BATCH_INVARIANT, kernel);
  const std::string invariant = info.content_key, config = info.config;
  CHECK(invariant != other);
  CHECK_MESSAGE(config.rfind("skeleton=portable_decode_invariant\n", 0) == 0, config);
  CHECK(hasField(config, "rescale_threshold=8")); // each row's maximum is its own
  CHECK(counting_nvrtc_compilations() == before + 1);
  for (uint32_t flags : {uint32_t(0), uint32_t(HEDDLE_FIRST_SOON),
                         uint32_t(HEDDLE_ONLY_STORED)}) { // it is filed as the default of its kind
    CAPTURE(flags);
    CHECK(of.keyOf("decode", flags | HEDDLE_BATCH_INVARIANT) == invariant);
    CHECK(of.keyOf("decode_invariant", flags | HEDDLE_BATCH_INVARIANT) == invariant);
    CHECK(of.keyOf("decode_invariant", flags) == invariant);
    CHECK(of.keyOf("decode", flags) == other);
  }
  CHECK(counting_nvrtc_compilations() == before + 1);
}

TEST_CASE("batch-invariant decode of other elements likewise, and what it cannot do is refused") {
  if (!start())
    return;
  Sequences of;
  for (const char *elements : {"_e4m3_kv", "_fp32_out"})
    CHECK(of.keyOf((std::string("decode") + elements).c_str(), HEDDLE_BATCH_INVARIANT) ==
          of.keyOf((std::string("decode_invariant") + elements).c_str(), 0));
  KernelHandle none;
  for (const char *kind : {"cascade", "cascade_e4m3_kv"})
    CHECK_REFUSED(of.find(kind, HEDDLE_BATCH_INVARIANT, none), HEDDLE_UNSUPPORTED,
                  "BATCH_INVARIANT: groups of kind cascade depend on the batch; kind decode serves its sequences");
  of.problem.value_dim = 128;
  CHECK_REFUSED(of.find("decode", HEDDLE_BATCH_INVARIANT, none), HEDDLE_UNSUPPORTED,
                "serves values of at most as many dims as keys");
  CHECK_OK(of.find("decode", 0, none));
}

TEST_CASE("rows of bytes depend on others, by their scales or their sums: batch-invariant ones are refused") {
  if (!start())
    return;
  Sequences of;
  KernelHandle none;
  for (const char *kind : {"quantize", "quantize_rotated"})
    CHECK_REFUSED(of.find(kind, HEDDLE_BATCH_INVARIANT, none), HEDDLE_UNSUPPORTED,
                  "BATCH_INVARIANT: kind " + std::string(kind) + " has a scale for many rows");
  of.problem.dtype = HEDDLE_E4M3, of.problem.head_dim = 128;
  for (const char *kind : {"forward", "forward_fp32_out"})
    CHECK_REFUSED(of.find(kind, HEDDLE_BATCH_INVARIANT, none), HEDDLE_UNSUPPORTED,
                  "BATCH_INVARIANT: rows of e4m3 are summed as those beside them want it; take bf16 or fp16");
}
