//===- cliff_test.cpp - why tiles hold mostly what is dropped -----------------===//
// Every cause has a pattern that has it and a near twin that has not; whatever visits more than twice the tiles that its
// kept pairs fill is told why, and nothing else is; what the advice promises is counted.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Views/ExplanationPrint.h"
#include "support/PatternFiles.h"

#include <nlohmann/json.hpp>

using namespace heddle;
using namespace heddle::test;
using heddle::views::Cliff;

namespace {

constexpr int64_t kTokens = 8192;

struct Sizes {
  int64_t queries = kTokens, keys = kTokens;
};

views::ExplainRequest requestOf(const PatternFile &file, int64_t heads, Sizes sizes = {}) {
  views::ExplainRequest request;
  request.sizes = {heads, sizes.queries, sizes.keys, 0, 0, {}};
  auto parameters = file.bindParameters({});
  REQUIRE(parameters.isOk());
  request.sizes.parameters = *parameters;
  request.operands = maskOperands(file, heads, sizes.queries, sizes.keys, request.sizes.parameters);
  request.sizes.tensors = tensorDataOf(request.operands);
  request.kvHeads = heads;
  request.headDim = request.valueDim = 64;
  request.gpu = *findGpuModel("h200");
  return request;
}

views::Explanation explained(const PatternFile &file, const views::ExplainRequest &request) {
  auto said = views::explain(file, request);
  REQUIRE_MESSAGE(said.isOk(), said.status().message());
  return said.take();
}

std::optional<Cliff> cliffOf(const std::string &text, Sizes sizes = {}) {
  auto file = parsed("attn.pattern @p() {\n" + text + "\n}");
  return explained(*file, requestOf(*file, 2, sizes)).cliff;
}

std::string causeOf(const std::string &text, Sizes sizes = {}) {
  const std::optional<Cliff> cliff = cliffOf(text, sizes);
  return cliff ? cliff->cause : "none";
}

std::string unionOf(const std::string &ops) { return ops + "\nattn.softmax union(%m)"; }

/// Keeps every n-th key.
std::string everyKey(int n) {
  return "%p = attn.predicate {\n^bb0(%b: i32, %h: i32, %q: i32, %k: i32):\n%n = arith.constant " + std::to_string(n) +
         " : i32\n%z = arith.constant 0 : i32\n%r = arith.remsi %k, %n : i32\n"
         "%i = arith.cmpi eq, %r, %z : i32\nattn.yield %i : i1\n}\n";
}

/// A window and so many classes of keys, at two rates.
std::string windowAndClasses(int count) {
  std::string text = "%w = attn.window [255, 0]\n", all = "%w";
  for (int i = 0; i < count; ++i) {
    const std::string name = "%s" + std::to_string(i);
    text += name + " = attn.stride k by " + (i ? "64" : "32") + " at " + std::to_string(i) + "\n";
    all += ", " + name;
  }
  return unionOf(text + "%m = attn.or " + all);
}

/// The union of so many boxes of `side` queries and keys on the diagonal of a grid of 256.
std::string boxes(int count, int side) {
  std::string text, all;
  for (int i = 0; i < count; ++i) {
    const std::string name = "%b" + std::to_string(i), first = std::to_string(256 * i),
                      last = std::to_string(256 * i + side - 1);
    text += name + " = attn.box [" + first + ", " + last + ", " + first + ", " + last + "]\n";
    all += (i ? ", " : "") + name;
  }
  return unionOf(text + "%m = attn.or " + all);
}

} // namespace

TEST_CASE("every cause has a pattern that has it, and a near twin that has not") {
  struct Case {
    const char *cause;
    std::string has, hasNot;
    Sizes sizesOfOne = {}, sizesOfOther = {};
  };
  const auto segments = [](int length) {
    return unionOf("%c = attn.causal %m = attn.segment %c by [" + std::to_string(length) + "]");
  };
  const auto randomBlocks = [](int size) {
    return unionOf("%r = attn.random count 3 seed 1 %m = attn.blocks %r by [" + std::to_string(size) + "]");
  };
  const auto stridedBlocks = [](int size) {
    return unionOf("%r = attn.stride k by 4 at 0 %m = attn.blocks %r by [" + std::to_string(size) + "]");
  };
  const auto twoRates = [](const char *far) {
    return std::string("%c = attn.full %s = attn.segment %c by [512] %b = attn.dilate %c by ") + far +
           " at 0 %m = attn.segment %b by [8192] attn.softmax lse(%s, %m)";
  };
  const auto nearAndStride = [](const char *combined) {
    return std::string("%w = attn.window [63, 63] %s = attn.stride k by 8 at 0 %c = attn.window [1000, 0] ") + combined;
  };
  const auto window = [](int left) { return unionOf("%m = attn.window [" + std::to_string(left) + ", 0]"); };
  const auto strideQ = [](int rate) { return unionOf("%m = attn.stride q by " + std::to_string(rate) + " at 0"); };
  const std::string full = unionOf("%m = attn.full"), strideK = unionOf("%m = attn.stride k by 8 at 0");
  const Case cases[] = {
      {"segments", segments(16), segments(512)},
      {"segments", unionOf("%f = attn.full %m = attn.segment %f by [130]"),
       unionOf("%f = attn.full %m = attn.segment %f by [128]")},
      {"band", window(15), window(1023)},
      {"band", unionOf("%w = attn.window [0, 0] %m = attn.blocks %w by [16]"),
       unionOf("%w = attn.window [0, 0] %m = attn.blocks %w by [128]")},
      {"blocks", randomBlocks(64), randomBlocks(128)},
      {"blocks", stridedBlocks(32), stridedBlocks(128)},
      {"single_keys", unionOf("%m = attn.random count 40 seed 1"), randomBlocks(128)},
      {"box", unionOf("%m = attn.cols [5, 0]"), unionOf("%m = attn.cols [128, 0]")},
      {"box", unionOf("%m = attn.rows [5, 0]"), unionOf("%m = attn.rows [128, 0]")},
      {"queries", full, full, {8, kTokens}, {64, kTokens}},
      {"keys", full, full, {kTokens, 20}, {kTokens, 100}},
      {"common_lattice", twoRates("32"), twoRates("2")},
      {"row_lattice", strideQ(4099), strideQ(64)},
      {"key_stride", nearAndStride("%o = attn.or %w, %s attn.softmax lse(%o, %c)"),
       nearAndStride("%n = attn.not %w %o = attn.and %s, %n attn.softmax lse(%w, %o, %c)")},
      {"key_stride", windowAndClasses(18), windowAndClasses(6), {4096, 4096}, {4096, 4096}},
      {"key_lattice", unionOf("%s = attn.stride k by 4 at 0 %m = attn.segment %s by [1024]"),
       unionOf("%f = attn.full %b = attn.segment %f by [1024] %s = attn.stride k by 4 at 0 %m = attn.and %b, %s")},
      {"masked", everyKey(8) + "attn.softmax union(%p)", strideK, {512, 512}, {kTokens, kTokens}},
      {"segments",
       everyKey(8) + "%m = attn.segment %p by [8] attn.softmax union(%m)",
       everyKey(1) + "%m = attn.segment %p by [128] attn.softmax union(%m)",
       {512, 512},
       {512, 512}},
      {"pieces", boxes(20, 128), boxes(8, 128)},
  };
  for (const Case &one : cases) {
    CAPTURE(one.has);
    CHECK(causeOf(one.has, one.sizesOfOne) == one.cause);
    CHECK(causeOf(one.hasNot, one.sizesOfOther) == "none");
  }
}

TEST_CASE("documents are short or long by their mean length") {
  auto file = parsed("attn.pattern @p(%cu: memref<?xi32>) {\n%c = attn.full\n"
                     "%m = attn.documents %c at %cu, %cu : memref<?xi32>, memref<?xi32>\nattn.softmax union(%m)\n}");
  for (int64_t length : {16, 1024}) {
    views::ExplainRequest request = requestOf(*file, 2);
    std::vector<int32_t> offsets;
    for (int64_t position = 0; position <= kTokens; position += length)
      offsets.push_back(int32_t(position));
    const int64_t entries = int64_t(offsets.size());
    request.sizes.parameters = {entries};
    request.operands = {OperandTensor::integers({entries}, offsets)};
    request.sizes.tensors = tensorDataOf(request.operands);
    const std::optional<Cliff> cliff = explained(*file, request).cliff;
    REQUIRE(cliff.has_value() == (length == 16));
    if (cliff)
      CHECK(cliff->detail == "documents of 16 tokens on average in tiles of 128 x 128");
  }
}

TEST_CASE("the cause is said in numbers, with what helps") {
  const std::optional<Cliff> cliff = cliffOf(unionOf("%f = attn.full %m = attn.segment %f by [4]"));
  REQUIRE(cliff);
  CHECK(cliff->detail == "segments of 4 tokens in tiles of 128 x 128");
  CHECK(*cliff->factor == doctest::Approx(32));
  CHECK(cliff->advice == "longer segments, or smaller tiles (`heddle tune`); 64 x 64: 16.0 times");
  CHECK(inWords(*cliff) ==
        "32.0 times the tiles that the kept pairs fill (segments): " + cliff->detail + "; helps: " + cliff->advice);
  CHECK(cliffOf(unionOf("%m = attn.stride q by 4099 at 0"))->detail ==
        "rows on a lattice of rate 4099, split into 1 class");
  CHECK(cliffOf(boxes(20, 128))
            ->detail.find("piece 7: 20 pieces, of which at most 8 are kept apart: the last 13 are "
                          "one") == 0);
  CHECK(cliffOf(unionOf("%m = attn.window [31, 0]"))->detail == "a band 32 keys wide in tiles of 128 x 128");
}

TEST_CASE("of several pieces and heads the one that wastes most is named") {
  const std::string near = "%w = attn.window [15, 0] %f = attn.full %s = attn.segment %f by [8]\n";
  CHECK(cliffOf(near + "attn.softmax lse(%w, %s)")->cause == "band"); // two tiles a row of tiles, and one
  CHECK(cliffOf(near + "attn.softmax lse(%w, %s)")->detail.find("branch 0: ") == 0);
  CHECK(cliffOf(near + "%c = attn.causal %m = attn.heads %c, %s attn.softmax union(%m)") == std::nullopt);
  const std::optional<Cliff> heads = cliffOf(near + "%m = attn.heads %s, %w attn.softmax union(%m)");
  REQUIRE(heads);
  CHECK(heads->detail.find("head group 1: a band") == 0);
}

TEST_CASE("patterns of the library have a line exactly where less than half of their tiles is kept") {
  constexpr int64_t kLong = 32768, kHeads = 12;
  int64_t below = 0;
  for (const std::string &path : halfOfLibrary(1)) {
    CAPTURE(path);
    auto file = loaded(path);
    const views::ExplainRequest request = requestOf(*file, kHeads, {kLong, kLong});
    const views::Explanation said = explained(*file, request);
    const std::string text = explanationText(*file, request, said, false);
    const auto json = nlohmann::json::parse(explanationJson(*file, request, said, false));
    const bool isBelow = said.tileEfficiency && *said.tileEfficiency < 0.5;
    below += isBelow;
    CHECK(isBelow == (text.find("\n  cliff ") != std::string::npos));
    REQUIRE(json.contains("cliff"));
    CHECK(isBelow == !json["cliff"].is_null());
    if (!isBelow)
      continue;
    CHECK(json["cliff"]["factor"].get<double>() == doctest::Approx(1 / json["tile_efficiency"].get<double>()));
    CHECK(json["cliff"]["cause"] != "borders");
    for (const char *key : {"cause", "detail", "advice"})
      CHECK(json["cliff"][key] != "");
  }
  CHECK(below >= (takesAll() ? 5 : 2));
}

TEST_CASE("long sequences are explained within as many evaluations as short ones") {
  for (const char *name : {"causal", "dilated_tiny", "longvit_1k"}) {
    CAPTURE(name);
    auto file = loaded(test::places().patterns + "/" + name + ".mlir");
    for (const int64_t length : {int64_t(1) << 15, int64_t(1) << 30}) {
      views::ExplainRequest request = requestOf(*file, 12, {length, length});
      request.sizes.mostEvaluations = 1 << 12;
      const views::Explanation said = explained(*file, request);
      CHECK(said.keptPairs);
      CHECK_FALSE(said.tiles.isBound);
    }
  }
}

TEST_CASE("where nothing is visited or nothing is known there is no cliff") {
  CHECK(causeOf(unionOf("%m = attn.full"), {0, 0}) == "none");
  CHECK(causeOf(unionOf("%f = attn.full %m = attn.not %f")) == "none");
  auto file = parsed("attn.pattern @p() {\n" + everyKey(8) + "attn.softmax union(%p)\n}");
  CHECK_FALSE(explained(*file, requestOf(*file, 2, {1000000, 1000000})).cliff); // too many pairs to be tried
}
