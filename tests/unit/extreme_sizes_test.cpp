//===- extreme_sizes_test.cpp - sizes that products take beyond 32 bits ------===//
// The forward functions as compiled, of compositions whose sizes are as large as 32 bits hold or lie about where
// positions end, nested in blocks, segments and dilations of sizes that are known and that are not, against the
// definition pair by pair. 100 random ones; 3000 with HEDDLE_TEST_ALL=1; HEDDLE_TEST_SEED=n starts elsewhere.
//===----------------------------------------------------------------------===//
#include "compiler/Oracle/PatternOracle.h"
#include "support/CompiledPattern.h"
#include "support/RandomPattern.h"
#include "support/RangeCheck.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int64_t kLargest = 2147483647, kEnd = int64_t(1) << 30;

std::unique_ptr<PatternFile> parse(const std::string &text) {
  auto file = PatternFile::parse(text, "test");
  return file.isOk() ? file.take() : nullptr;
}

struct Call {
  int seqlenQ, seqlenK, qOrigin = 0, kOrigin = 0, heads = 1;
};

struct Case {
  const PatternFile &file;
  std::shared_ptr<const PatternInfo> info;
  std::vector<int64_t> sizes;
  Call call;
};

JitContext contextOf(const Case &made) {
  JitContext context;
  context.heads = made.call.heads;
  context.seqlenQ = made.call.seqlenQ;
  context.seqlenK = made.call.seqlenK;
  context.qOrigin = made.call.qOrigin;
  context.kOrigin = made.call.kOrigin;
  std::copy(made.sizes.begin(), made.sizes.end(), context.params.begin());
  return context;
}

/// An account of the first disagreement of ranges, or of a pair; empty if there is none.
template <class Functions> std::string disagreement(const Functions &functions, const Case &made, TileShape tile) {
  oracle::Problem problem{made.call.heads,   made.call.seqlenQ, made.call.seqlenK,
                          made.call.qOrigin, made.call.kOrigin, made.sizes};
  const oracle::PatternOracle definition(made.file.lowered(), problem);
  HandPattern pattern;
  pattern.info = made.info;
  pattern.keeps = [&](const JitContext &c, int branch, int q, int k) {
    return definition.keeps(branch, c.head, q - c.qOrigin, k - c.kOrigin);
  };
  JitContext context = contextOf(made);
  for (context.head = 0; context.head < context.heads; ++context.head) {
    for (int branch = 0; branch < pattern.branchCount(); ++branch)
      for (int q = context.qOrigin; q < context.qOrigin + context.seqlenQ; ++q)
        for (int k = context.kOrigin; k < context.kOrigin + context.seqlenK; ++k)
          if (functions.keep(context, branch, q, k) != pattern.keeps(context, branch, q, k))
            return "query " + std::to_string(q) + ", key " + std::to_string(k);
    if (RangeReport report = checkRanges(functions, pattern, context, tile); !report.error.empty())
      return "head " + std::to_string(context.head) + ": " + report.error;
  }
  return {};
}

int64_t fromEnvironment(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// Of the functions for this machine; `isValid` if the verifier takes the pattern.
std::string disagreement(const RandomCase &made, bool &isValid) {
  std::vector<int64_t> sizes;
  auto file = parse(made.text(sizes));
  isValid = file != nullptr;
  if (!file)
    return {};
  auto functions = functionsOf(*file);
  REQUIRE_MESSAGE(functions.isOk(), functions.status().message());
  auto jit = JitPattern::create(*functions->module, *functions->info);
  REQUIRE(succeeded(jit));
  const Call call{int(made.seqlenQ), int(made.seqlenK), int(made.qOrigin), int(made.kOrigin), int(made.heads)};
  return disagreement(*jit, {*file, functions->info, sizes, call}, {int(made.blockM), int(made.blockN)});
}

/// One mask over run-time sizes a and b, all pairs of `sizes`, as text and for this machine.
void checkSizes(const std::string &mask, const std::vector<int64_t> &sizes,
                const std::vector<Call> &calls = {{70, 70}, {9, 75, 66, 0}}) {
  auto file = parse("attn.pattern @p(%a: i32, %b: i32) { " + mask + " attn.softmax union(%m) }");
  REQUIRE(file);
  const Compiled compiled(*file);
  for (int64_t a : sizes)
    for (int64_t b : sizes)
      for (const Call &call : calls) {
        const Case made{*file, compiled.info, {a, b}, call};
        INFO(mask << " a " << a << " b " << b << " q " << call.seqlenQ << "+" << call.qOrigin);
        CHECK(disagreement(*compiled.jit, made, {16, 8}) == "");
        CHECK(disagreement(*compiled.text, made, {16, 8}) == "");
      }
}

const std::vector<int64_t> kLengths = {1, 4, 128, 65536, 700000000, kEnd - 1, kEnd, kLargest};

} // namespace

TEST_CASE("segments, windows, rows, columns and boxes inside blocks of a run-time size") {
  for (const char *leaf :
       {"full %s = attn.segment %l by [%a] %m = attn.blocks %s by [%b]", "window [%a, 1] %m = attn.blocks %l by [%b]",
        "window [0, %a] %n = attn.not %l %m = attn.blocks %n by [%b]", "rows [%a, 0] %m = attn.blocks %l by [%b]",
        "rows [1, %a] %n = attn.not %l %m = attn.blocks %n by [%b]", "cols [0, %a] %m = attn.blocks %l by [%b]",
        "box [1, %a, 0, %a] %m = attn.blocks %l by [%b]", "prefix [%a] %m = attn.blocks %l by [%b]",
        "window [1, 1] %s = attn.blocks %l by [%a] %m = attn.blocks %s by [%b]"})
    checkSizes(std::string("%l = attn.") + leaf, kLengths);
}

TEST_CASE("run-time sizes inside blocks of a size that does not divide where positions end, and inside dilations") {
  const std::vector<int64_t> sizes = {3, 1 << 24, kEnd - 1, kLargest};
  for (const char *rest : {"%m = attn.blocks %l by [48]", "%m = attn.blocks %l by [700000000]",
                           "%s = attn.blocks %l by [%b] %m = attn.dilate %s by 3 at 1",
                           "%s = attn.segment %l by [%b] %m = attn.dilate %s by 5 rule(every)",
                           "%s = attn.segment %l by [%b] %m = attn.blocks %s by [3]"})
    for (const char *leaf : {"window [%a, 1]", "box [0, %a, 1, %a]"})
      checkSizes(std::string("%l = attn.") + leaf + " " + rest, sizes);
}

TEST_CASE("blocks at a stride and random ones, in blocks of a run-time size") {
  for (const char *inner : {"%w = attn.window [%a, %a] %i = attn.dilate %w by 2 rule(every)",
                            "%i = attn.stride k by 3 at 1", "%i = attn.random count 2 seed 5"})
    checkSizes(std::string(inner) + " %m = attn.blocks %i by [%b]", {1, 5, kEnd / 2 + 1, kEnd, kLargest});
}

TEST_CASE("sizes beyond 32 bits' products where positions end") {
  const int last = int(kEnd) - 60;
  for (const char *leaf :
       {"full %s = attn.segment %l by [%a]", "window [%a, 1] %s = attn.or %l, %l", "rows [%a, 0] %s = attn.or %l, %l"})
    checkSizes(std::string("%l = attn.") + leaf + " %m = attn.blocks %s by [%b]",
               {1, 3, 65536, 700000000, kEnd - 1, kLargest}, {{60, 60, last, last}, {40, 60, 1 << 29, (1 << 29) - 20}});
}

TEST_CASE("random compositions with sizes as large as 32 bits hold, as they are compiled") {
  const int64_t wanted = fromEnvironment("HEDDLE_TEST_ALL", 0) ? 3000 : 100,
                seed = fromEnvironment("HEDDLE_TEST_SEED", 1);
  for (int64_t tried = 0, checked = 0, failures = 0; checked < wanted && failures < 5; ++tried) {
    REQUIRE_MESSAGE(tried < 3 * wanted + 100, "too many patterns are refused by the verifier");
    std::mt19937 random(uint32_t(seed * 1000003 + tried));
    const RandomCase made = extremeCase(random, 3);
    bool isValid = false;
    const std::string account = disagreement(made, isValid);
    checked += isValid;
    failures += !account.empty();
    CHECK_MESSAGE(account == "", made.describe(), "\n", account);
  }
}
