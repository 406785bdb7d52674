//===- explain_test.cpp - what a pattern is said to cost ----------------------===//
// The numbers of `heddle explain` against formulas, brute force and each other; the JSON that other programs rely on.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Oracle/PatternOracle.h"
#include "compiler/Views/ExplanationPrint.h"
#include "dialect/Geometry/TileVisitor.h"
#include "runtime/Core/LaunchExpr.h"
#include "support/PatternFiles.h"

#include <nlohmann/json.hpp>

using namespace heddle;
using namespace heddle::test;
using heddle::views::ExplainRequest;
using heddle::views::Explanation;

namespace {

ExplainRequest requestOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK) {
  ExplainRequest request;
  request.sizes = {heads, seqlenQ, seqlenK, 0, 0, {}};
  auto parameters = file.bindParameters({});
  REQUIRE(parameters.isOk());
  request.sizes.parameters = *parameters;
  request.kvHeads = heads;
  request.gpu = *findGpuModel("h200");
  return request;
}

/// With tensors for what masks read.
ExplainRequest wholeRequestOf(const PatternFile &file, int64_t heads, int64_t seqlenQ, int64_t seqlenK,
                              std::optional<int64_t> size = {}) {
  ExplainRequest request = requestOf(file, heads, seqlenQ, seqlenK);
  for (int64_t &parameter : request.sizes.parameters)
    parameter = size.value_or(parameter);
  request.operands = maskOperands(file, heads, seqlenQ, seqlenK, request.sizes.parameters);
  request.sizes.tensors = tensorDataOf(request.operands);
  return request;
}

Explanation explained(const PatternFile &file, const ExplainRequest &request) {
  auto explanation = views::explain(file, request);
  REQUIRE_MESSAGE(explanation.isOk(), explanation.status().message());
  return explanation.take();
}

nlohmann::json jsonOf(const PatternFile &file, const ExplainRequest &request, bool withConfigs = false) {
  return nlohmann::json::parse(views::explanationJson(file, request, explained(file, request), withConfigs));
}

std::string pathOf(const std::string &name) { return test::places().patterns + "/" + name + ".mlir"; }

} // namespace

TEST_CASE("causal attention costs what the formulas say") {
  auto file = loaded(pathOf("causal"));
  ExplainRequest request = requestOf(*file, 8, 8192, 8192);
  request.batch = 2;
  request.kvHeads = 2;
  nlohmann::json json = jsonOf(*file, request);
  int64_t kept = 8 * int64_t(8192) * 8193 / 2;
  CHECK(json["kept_pairs"].get<int64_t>() == kept);
  CHECK(json["flops"].get<int64_t>() == kept * 2 * 4 * 128);
  CHECK(json["tiles"]["visited"].get<int64_t>() == 8 * 64 * 65 / 2);
  CHECK(json["tiles"]["full"].get<int64_t>() == 8 * 64 * 63 / 2);
  CHECK(json["tiles"]["partial"].get<int64_t>() == 8 * 64);
  CHECK(json["transposed_tiles"]["visited"] == json["tiles"]["visited"]);
  CHECK(json["density"].get<double>() == doctest::Approx(double(kept) / (8.0 * 8192 * 8192)));
  CHECK(json["tile_efficiency"].get<double>() == doctest::Approx(double(kept) / (8.0 * 64 * 65 / 2 * 128 * 128)));
  int64_t rows = 2 * 8192 * 8;
  CHECK(json["bytes"].get<int64_t>() == (2 * rows + 2 * 2 * 8192 * 2) * 128 * 2 + 4 * rows);
  CHECK(json["roofline"]["bound"] == "compute");
  CHECK(json["roofline"]["ms"].get<double>() == doctest::Approx(double(kept) * 1024 / 989.4e12 * 1e3));
  // What blocks take tiles of unequal length by, and a word for each tile of 192 rows that may be computed again.
  CHECK(json["workspace_bytes"] == 16 + 2 * 8 * ((8192 + 191) / 192) * 4);
  CHECK(json["variants"][0]["heads"] == 8);
}

TEST_CASE("the roofline is that of products of the call's elements") {
  auto file = loaded(pathOf("causal"));
  ExplainRequest request = requestOf(*file, 8, 8192, 8192);
  auto tflopsOf = [&](DType dtype) {
    request.dtype = dtype;
    const Explanation said = explained(*file, request);
    REQUIRE(said.roofline);
    CHECK(said.roofline->computeMs == doctest::Approx(double(*said.flops) / said.roofline->matrixTflops * 1e-9));
    return said.roofline->matrixTflops;
  };
  const double bf16 = tflopsOf(DType::bf16);
  CHECK(tflopsOf(DType::fp16) == bf16);
  CHECK(tflopsOf(DType::fp32) == doctest::Approx(bf16 / 3));
  CHECK(tflopsOf(DType::e4m3) == doctest::Approx(bf16 * 2));
  request.precision = Precision::tf32;
  CHECK(tflopsOf(DType::fp32) == doctest::Approx(bf16 / 2));
  request.gpu = *findGpuModel("a100"); // without products of fp8
  CHECK(tflopsOf(DType::e4m3) == tflopsOf(DType::bf16));
}

TEST_CASE("what e4m3 loses in the sums of the tensor cores is told of the default configuration") {
  auto file = loaded(pathOf("causal"));
  ExplainRequest request = requestOf(*file, 8, 8192, 8192);
  CHECK_FALSE(explained(*file, request).sums);
  CHECK(jsonOf(*file, request)["sums"].is_null());
  request.dtype = DType::e4m3;
  const nlohmann::json sums = jsonOf(*file, request)["sums"];
  CHECK(sums["keys"] == 25 * 96); // flush_tiles of block_n keys, and one more where a run ends
  CHECK(sums["loss"].get<double>() == doctest::Approx(0.0328).epsilon(0.01));
}

TEST_CASE("the workspace of gradients is what its printed formulas give, for other calls as well") {
  auto file = loaded(pathOf("causal"));
  constexpr int kTileRows = 64,
                kTurnBytes = 4; // of a tile of queries, where sums are added in order, and of their counter
  for (const auto &[kind, isOrdered] : {std::pair("backward", false), std::pair("backward_deterministic", true)}) {
    ExplainRequest request = requestOf(*file, 8, 1000, 700);
    request.batch = 2, request.kvHeads = 2;
    request.kind = *Kind::parse(kind);
    const nlohmann::json json = jsonOf(*file, request);
    const int64_t rows = 2 * 8 * 1024, turns = isOrdered ? (rows / kTileRows + 1) * kTurnBytes : 0; // in whole tiles
    CHECK(json["workspace_bytes"] == rows * 4 * (2 + 128) + turns); // lse, delta and sums
    CHECK(json["workspace_regions"].size() == (isOrdered ? 4 : 3));
    for (const auto &[batch, queries] : {std::pair(2, 1000), std::pair(1, 1), std::pair(3, 129)}) {
      request.batch = batch, request.sizes.seqlenQ = queries;
      LaunchSymbols symbols;
      symbols[LaunchSymbol::batch] = batch;
      symbols[LaunchSymbol::heads] = 8;
      symbols[LaunchSymbol::seqlenQ] = queries;
      const nlohmann::json other = jsonOf(*file, request);
      for (size_t i = 0; i < json["workspace_regions"].size(); ++i) {
        const auto formula = LaunchExpr::parse(json["workspace_regions"][i]["formula"].get<std::string>());
        REQUIRE(formula.isOk());
        CHECK(*formula->evaluate(symbols) == other["workspace_regions"][i]["bytes"]);
      }
    }
  }
}

TEST_CASE("kept pairs and tiles of every pattern file equal brute force") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    ExplainRequest request = wholeRequestOf(*file, 5, 130, 97, 5);
    request.tile = {16, 8};
    const attn::ProblemSizes &s = request.sizes;
    oracle::PatternOracle definition(file->pattern(),
                                     {s.heads, s.seqlenQ, s.seqlenK, 0, 0, s.parameters, request.operands});
    int64_t kept = 0;
    for (int64_t head = 0; head < s.heads; ++head)
      for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
        for (int64_t i = 0; i < s.seqlenQ; ++i)
          for (int64_t j = 0; j < s.seqlenK; ++j)
            kept += definition.keeps(branch, head, i, j);
    nlohmann::json json = jsonOf(*file, request);
    CHECK(json["kept_pairs"].get<int64_t>() == kept);
    CHECK(json["tiles"]["visited"].get<int64_t>() * 128 >= kept);
    CHECK(json["tiles"]["full"].get<int64_t>() + json["tiles"]["partial"].get<int64_t>() ==
          json["tiles"]["visited"].get<int64_t>());
  }
}

TEST_CASE("a billion tokens take few evaluations, and numbers beyond 64 bits are right") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    ExplainRequest request = requestOf(*file, 8, 1000000000, 1000000000);
    request.sizes.mostEvaluations = 1 << 14; // far below any walk over tiles
    nlohmann::json json = jsonOf(*file, request);
    auto isOf = [&](const char *name) { return path.find(name) != path.npos; };
    // lists too long, tensors not given
    const bool isUnknown =
        isOf("bigbird") || isOf("random_blocks") || isOf("document") || isOf("tree") || isOf("csr") || isOf("topk");
    CHECK(isUnknown == json["tiles"]["is_bound"].get<bool>());
    CHECK((isUnknown ? json["kept_pairs"].is_null() : json["kept_pairs"].is_number_unsigned()));
  }
  auto file = loaded(pathOf("full"));
  nlohmann::json json = jsonOf(*file, requestOf(*file, 8, 2000000000, 2000000000));
  CHECK(json["kept_pairs"] == "32000000000000000000");
  CHECK(json["flops"] == "16384000000000000000000");
  CHECK(json["big_integers"] == true);
}

TEST_CASE("a tile across thousands of segments takes a few evaluations") {
  constexpr int64_t kTokens = 1 << 20, kCell = 8192, kMost = 200; // lists are read block by block, 128 of 64 tokens
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    const attn::ProblemSizes sizes = wholeRequestOf(*file, 4, kTokens, kTokens).sizes;
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const attn::Variant &variant = file->analysis().variants[attn::variantOf(file->analysis(), sizes, head)];
      for (attn::Direction direction : {attn::Direction::Forward, attn::Direction::Transposed}) {
        const attn::VariantRanges &ranges =
            direction == attn::Direction::Forward ? variant.forward : variant.transposed;
        for (unsigned branch = 0; branch < ranges.branches.size() && !attn::lacksTensors(file->analysis(), sizes);
             ++branch)
          for (int64_t tile : {0, 77})
            CHECK(attn::TileVisitor(ranges, branch, direction, sizes)
                      .visit(head, {0, tile, kCell / ranges.rowRate}, kCell / ranges.branches[branch].columnRate)
                      .evaluations <= kMost);
      }
    }
  }
  auto tiny = loaded(pathOf("longnet_tiny"));
  const attn::ProblemSizes sizes = wholeRequestOf(*tiny, 1, kTokens, kTokens).sizes;
  const attn::TileVisit visit =
      attn::TileVisitor(tiny->analysis().variants[0].forward, 0, attn::Direction::Forward, sizes)
          .visit(0, {0, 3, kCell}, kCell);
  CHECK(visit.evaluations < 10); // of 8192 segments of 4
}

TEST_CASE("sums over a long sequence equal its tiles one by one") {
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    attn::ProblemSizes sizes = wholeRequestOf(*file, 5, 70001, 69990).sizes;
    sizes.qOrigin = -11;
    const attn::PatternAnalysis &analysis = file->analysis();
    for (int64_t head = 0; head < sizes.heads; head += 2)
      for (attn::Direction direction : {attn::Direction::Forward, attn::Direction::Transposed}) {
        const attn::Variant &variant = analysis.variants[attn::variantOf(analysis, sizes, head)];
        const attn::VariantRanges &ranges =
            direction == attn::Direction::Forward ? variant.forward : variant.transposed;
        const int64_t rows = direction == attn::Direction::Forward ? sizes.seqlenQ : sizes.seqlenK;
        attn::TileCounts counts;
        for (unsigned branch = 0; branch < ranges.branches.size(); ++branch)
          for (int64_t rowClass = 0; rowClass < ranges.rowRate; ++rowClass)
            for (int64_t tile = 0; rowClass + ranges.rowRate * 112 * tile < rows; ++tile) {
              attn::TileVisit visit =
                  attn::TileVisitor(ranges, branch, direction, sizes).visit(head, {rowClass, tile, 112}, 48);
              for (const attn::TileRun &run : visit.visited)
                counts.visited += run.end - run.begin;
              for (const attn::TileRun &run : visit.full)
                counts.full += run.end - run.begin;
            }
        attn::TileCounts sums = attn::countTilesOfHead(analysis, sizes, head, {112, 48}, direction);
        CHECK(sums.visited == counts.visited);
        CHECK(sums.full == counts.full);
      }
  }
}

TEST_CASE("heads that evaluate alike are counted together, and rightly") {
  auto file = parsed("attn.pattern @p() { %c = attn.causal %d = attn.dilate %c by 3 rule(block) "
                     "%e = attn.dilate %c by 2 rule(modulo) %m = attn.segment %d by [17] attn.softmax lse(%m, %e) }");
  for (int64_t heads : {1, 2, 5, 7, 12}) {
    attn::ProblemSizes sizes{heads, 61, 61, 0, 0, {}};
    attn::TileCounts sum, all = attn::countTiles(file->analysis(), sizes, {8, 4}, attn::Direction::Forward);
    for (int64_t head = 0; head < heads; ++head) {
      attn::TileCounts one = attn::countTilesOfHead(file->analysis(), sizes, head, {8, 4}, attn::Direction::Forward);
      sum.visited += one.visited;
      sum.full += one.full;
    }
    CHECK(attn::toString(all.visited) == attn::toString(sum.visited));
    CHECK(attn::toString(all.full) == attn::toString(sum.full));
  }
}

TEST_CASE("pairs without a closed form are counted one by one or not at all") {
  auto file = parsed(unionText(kNeighbourBlocks));
  nlohmann::json small = jsonOf(*file, requestOf(*file, 2, 8, 8));
  CHECK(small["kept_pairs"] == 2 * (2 * 8 + 2 * 3 * 4 - 0)); // per head: blocks 0 and 3 see 2, blocks 1 and 2 see 3
  CHECK(small["kept_pairs_note"].get<std::string>().find("pair by pair") != std::string::npos);
  CHECK(small["variants"][0]["branches"][0]["masked"] == true);
  CHECK(small["variants"][0]["branches"][0]["reason"] != "");
  nlohmann::json large = jsonOf(*file, requestOf(*file, 2, 1000000, 1000000));
  CHECK(large["kept_pairs"].is_null());
  CHECK(large["flops"].is_null());
  CHECK(large["density"].is_null());
  CHECK(large["kept_pairs_note"].get<std::string>().find("without a closed form") != std::string::npos);
}

TEST_CASE("pairs of heads that a predicate treats alike are tried once") {
  auto blocks = parsed(unionText(kNeighbourBlocks));
  auto ofHead = parsed(unionText(R"(%m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %keep = arith.cmpi sle, %k, %h : i32
    attn.yield %keep : i1
  })"));
  auto keptOf = [](const PatternFile &file, int64_t heads, int64_t most) {
    auto kept = views::keptPairsOf(file, {heads, 100, 100, 0, 0, {}}, {}, {most});
    REQUIRE_MESSAGE(kept.isOk(), kept.status().message());
    return kept.take();
  };
  const auto one = keptOf(*blocks, 1, 10000), twelve = keptOf(*blocks, 12, 10000);
  REQUIRE(twelve.count.has_value());
  CHECK(*twelve.count == 12 * *one.count);
  CHECK(twelve.rowsRead == 100);
  const auto each = keptOf(*ofHead, 12, 120000);
  REQUIRE(each.count.has_value());
  CHECK(*each.count == 100 * 12 * 13 / 2);
  CHECK(each.rowsRead == 1200);
  CHECK(!keptOf(*ofHead, 12, 119999).count.has_value());
}

TEST_CASE("why tiles of keys alone are masked is said, in words and as data") {
  struct Case {
    std::string ops, why, whyPiece;
  };
  for (const Case &one :
       {Case{"%a = attn.stride q by 3 at 0 %m = attn.segment %a by [7]",
             "a residue class changes from segment to segment", "a residue class changes from segment to segment"},
        {"%m = attn.stride k by 4099 at 0",
         "keys on a lattice of rate 4099, split into 1 class: up to 4099 times the tiles; rates whose common multiple "
         "is at most 64 are exact",
         ""}}) {
    CAPTURE(one.ops);
    const auto file = parsed(unionText(one.ops));
    const ExplainRequest request = requestOf(*file, 1, 640, 640);
    const nlohmann::json branch = jsonOf(*file, request)["variants"][0]["branches"][0];
    CHECK(branch["masked"] == false);
    CHECK(branch["transposed"]["masked"] == true);
    CHECK(branch["transposed"]["reason"] == one.why);
    CHECK(branch["transposed"]["why_masked"] == nlohmann::json{one.whyPiece});
    auto said = explain(*file, request);
    REQUIRE(said.isOk());
    const std::string text = explanationText(*file, request, *said, false);
    CHECK(text.find(", transposed masked: " + one.why + "\n") != std::string::npos);
    CHECK((text.find("closed form; transposed masked: " + one.whyPiece) != std::string::npos) == !one.whyPiece.empty());
  }
  const auto both = parsed(unionText(kNeighbourBlocks));
  const ExplainRequest request = requestOf(*both, 1, 64, 64);
  CHECK(explanationText(*both, request, *explain(*both, request), false).find("transposed masked") ==
        std::string::npos);
}

TEST_CASE("empty problems cost nothing") {
  auto file = loaded(pathOf("longformer"));
  for (auto [q, k] : {std::pair<int64_t, int64_t>{0, 0}, {0, 9}, {9, 0}}) {
    nlohmann::json json = jsonOf(*file, requestOf(*file, 2, q, k));
    CHECK(json["kept_pairs"] == 0);
    CHECK(json["tiles"]["visited"] == 0);
    CHECK(json["density"] == 0.0);
    CHECK(json["tile_efficiency"] == 0.0);
  }
}

TEST_CASE("pieces are said in words") {
  auto words = [](const std::string &ops) {
    auto file = parsed(unionText(ops));
    return jsonOf(*file, requestOf(*file, 1, 64, 64))["variants"][0]["branches"][0]["pieces"][0].get<std::string>();
  };
  CHECK(words("%m = attn.full") == "every pair");
  CHECK(words("%m = attn.causal") == "keys up to the query itself");
  CHECK(words("%m = attn.window [3, 1]") == "keys from 3 before the query to 1 after the query");
  CHECK(words("%a = attn.full %m = attn.segment %a by [16]") == "inside segments of 16");
  CHECK(words("%m = attn.cols [5, 0]") == "keys up to 4");
  CHECK(words("%m = attn.stride k by 4 at 3") == "keys = 3 mod 4");
}

TEST_CASE("configurations are listed with what rules them out") {
  auto file = loaded(pathOf("causal"));
  ExplainRequest request = requestOf(*file, 1, 128, 128);
  nlohmann::json configs = jsonOf(*file, request, true)["configs"];
  REQUIRE(configs[0]["applies"] == true);
  int64_t preferred = 0, rejected = 0;
  for (const nlohmann::json &config : configs[0]["near_default"])
    preferred += config["default"] == true;
  CHECK(preferred == 1);
  for (const nlohmann::json &rule : configs[0]["rejected"]) {
    rejected += rule["count"].get<int64_t>();
    CHECK(rule["example"] != "");
  }
  CHECK(rejected > 0);
  request.headDim = 100000;
  nlohmann::json none = jsonOf(*file, request, true);
  CHECK(none["configs"][0]["applies"] == false);
  CHECK(none["workspace_bytes"].is_null());
  CHECK(none["workspace_note"].get<std::string>().find("100000") != std::string::npos);
}

TEST_CASE("the text says the same") {
  auto file = loaded(pathOf("dilated"));
  ExplainRequest request = requestOf(*file, 8, 8192, 8192);
  std::string text = views::explanationText(*file, request, explained(*file, request), false);
  for (const char *part : {"83,886,080", "5,120 visited", "NVIDIA H200", "3 heads from 0 on", "2 heads from 6 on",
                           "inside segments of 8192", "mod 4"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}
