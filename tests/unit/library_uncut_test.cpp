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
  CHECK(session.find(HEDDLE_UNCUT | HEDDLE_ONLY_STORED, none, of.problem) == HEDDLE_NOT_FOUND);
  const std::string uncut = configOf(session, HEDDLE_UNCUT);
  CHECK_MESSAGE(hasField(uncut, "split_tiles=0"), uncut);
  CHECK(configOf(session, HEDDLE_UNCUT | HEDDLE_FIRST_SOON) == uncut);
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
  CHECK(configOf(soon, HEDDLE_UNCUT | HEDDLE_FIRST_SOON) == configOf(soon, HEDDLE_UNCUT)); // no other one meanwhile
  for (const char *text : {kGlobal, kWindowText, "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }"}) {
    Session session;
    session.pattern = partOf(text);
    for (int64_t headDim : {64, 128}) {
      const Problem of(session.pattern.get(), headDim);
      const std::string config = infoOf(session.found(HEDDLE_UNCUT, of.problem).get()).config;
      CAPTURE(config);
      CHECK(hasField(config, "split_tiles=0"));
      CHECK(hasField(config, "softmax=2"));
      CHECK(hasField(config, "rescale_threshold=8"));
      CHECK((hasField(config, "block_n=64") || hasField(config, "block_n=128")));
    }
    Problem of(session.pattern.get());
    of.problem.kind = "backward_accumulate";
    const std::string config = infoOf(session.found(HEDDLE_UNCUT, of.problem).get()).config;
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
