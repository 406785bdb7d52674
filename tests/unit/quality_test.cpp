//===- quality_test.cpp - what patterns lose against dense attention ----------===//
// Masks whose numbers have closed forms: with q = 0 all weights of a row are equal, with v = the key's number its
// output is the mean of the kept numbers.
//===----------------------------------------------------------------------===//
#include "compiler/Views/Quality.h"
#include "support/PatternFiles.h"

#include <cmath>

using namespace heddle;
using namespace heddle::test;
using heddle::views::AttentionGraph;
using heddle::views::Quality;

namespace {

struct Case {
  std::string body;
  int64_t heads = 1, seqlen = 32, tile = 128;
  int64_t seqlenK = 0; ///< 0: as seqlen
};

AttentionInputs evenInputs(int64_t heads, int64_t rows, int64_t keys) {
  HostTensor q = HostTensor::zeros(DType::fp32, {1, rows, heads, 1}),
             k = HostTensor::zeros(DType::fp32, {1, keys, heads, 1});
  HostTensor v = k;
  for (int64_t i = 0; i < v.elements(); ++i)
    v.set(i, float(i / heads));
  return *makeAttentionInputs({q, k, v});
}

Quality measured(const Case &tested, const AttentionInputs &inputs) {
  auto file = PatternFile::parse("attn.pattern @p() {\n" + tested.body + "\n}", "test");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  const int64_t keys = tested.seqlenK ? tested.seqlenK : tested.seqlen;
  auto quality = views::measureQuality(
      **file, {{tested.heads, tested.seqlen, keys, 0, 0, {}}, {tested.tile, tested.tile}, &inputs, 0});
  REQUIRE_MESSAGE(quality.isOk(), quality.status().message());
  return quality.take();
}

Quality measured(const Case &tested) {
  return measured(tested, evenInputs(tested.heads, tested.seqlen, tested.seqlenK ? tested.seqlenK : tested.seqlen));
}

constexpr const char *kFull = "%m = attn.full\n attn.softmax union(%m)";
constexpr const char *kCausal = "%m = attn.causal\n attn.softmax union(%m)";

std::string windowOf(int64_t left, int64_t right) {
  return "%m = attn.window [" + std::to_string(left) + ", " + std::to_string(right) + "]\n attn.softmax union(%m)";
}

} // namespace

TEST_CASE("dense and causal attention lose nothing and connect in one layer") {
  for (const char *body : {kFull, kCausal}) {
    auto random = randomAttentionInputs({1, 48, 48, 2, 1, 8, 4}, DType::bf16, 5);
    REQUIRE(random.isOk());
    Quality quality = measured({body, 2, 48}, *random);
    CHECK(quality.rows.isCausal == (body == kCausal));
    CHECK(quality.rows.rows == 96);
    CHECK(quality.rows.leastMass == doctest::Approx(1));
    CHECK(quality.rows.meanMass == doctest::Approx(1));
    CHECK(quality.rows.relativeError == doctest::Approx(0));
    CHECK(quality.rows.maxError == doctest::Approx(0));
    CHECK(quality.depth.closure.layers == 1);
  }
}

TEST_CASE("a causal window: mass, error and depth by their formulas") {
  for (int64_t n : {1, 2, 33, 64})
    for (int64_t left : {1, 4, 31}) {
      CAPTURE(n);
      CAPTURE(left);
      Quality quality = measured({windowOf(left, 0), 1, n});
      double mass = 0, least = 1, squares = 0, errors = 0, most = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double kept = double(std::min(i, left) + 1) / double(i + 1);
        const double dense = i / 2.0, error = i - std::min(i, left) / 2.0 - dense;
        mass += kept / double(n);
        least = std::min(least, kept);
        squares += dense * dense;
        errors += error * error;
        most = std::max(most, error);
      }
      CHECK(quality.rows.isCausal);
      CHECK(quality.rows.meanMass == doctest::Approx(mass));
      CHECK(quality.rows.leastMass == doctest::Approx(least));
      CHECK(quality.rows.relativeError == doctest::Approx(squares > 0 ? std::sqrt(errors / squares) : 0));
      CHECK(quality.rows.maxError == doctest::Approx(most));
      CHECK(quality.depth.closure.layers == std::max<int64_t>(1, (n - 1 + left - 1) / left));
    }
}

TEST_CASE("a window to both sides takes as many layers, of all pairs") {
  Quality quality = measured({windowOf(3, 3), 1, 65});
  CHECK_FALSE(quality.rows.isCausal);
  CHECK(quality.depth.closure.layers == 22); // ceil(64 / 3)
  CHECK(quality.rows.leastMass == doctest::Approx(4.0 / 65));
}

TEST_CASE("residue classes never meet") {
  Quality quality = measured({"%f = attn.full\n %m = attn.dilate %f by 4 rule(every)\n attn.softmax union(%m)"});
  CHECK_FALSE(quality.depth.closure.layers.has_value());
  CHECK(quality.depth.closure.connected == doctest::Approx(0.25));
  CHECK(quality.depth.closure.settledAfter == 1);
  CHECK(quality.rows.meanMass == doctest::Approx(0.25));
}

TEST_CASE("heads share what they know: a class of each head and a window connect everything") {
  Quality quality = measured({"%f = attn.full\n %s = attn.stride k by 8 at 0\n %w = attn.window [0, 7]\n %m = "
                              "attn.heads %s, %w\n attn.softmax union(%m)",
                              2, 64});
  CHECK(quality.depth.closure.layers == 2); // from the nearest multiple of 8 before the key
}

TEST_CASE("rows that keep nothing are counted, and their output is 0") {
  Quality quality = measured({"%f = attn.full\n %m = attn.dilate %f by 4 at 0\n attn.softmax union(%m)"});
  CHECK(quality.rows.emptyRows == 24);
  CHECK(quality.rows.leastMass == 0);
  CHECK(quality.rows.meanMass == doctest::Approx(0.25 / 4));
  CHECK(quality.rows.maxError == doctest::Approx(15.5)); // the mean of 0 to 31
}

TEST_CASE("a key of two branches has its mass once and its weight twice") {
  Quality quality = measured({"%f = attn.full\n %b = attn.box [0, 4, 3, 4]\n attn.softmax lse(%f, %b)", 1, 4});
  CHECK(quality.rows.leastMass == doctest::Approx(1));
  CHECK(quality.rows.maxError == doctest::Approx(0.3)); // (0 + 1 + 2 + 3 + 3) / 5 - 6 / 4
}

TEST_CASE("the reference has the pattern's scores") {
  auto random = randomAttentionInputs({1, 40, 40, 4, 4, 16, 16}, DType::fp32, 1);
  REQUIRE(random.isOk());
  Quality quality = measured({"%m = attn.causal\n %s = attn.scaled\n %t = attn.alibi %s\n %u = attn.softcap %t by "
                              "3.0\n attn.softmax union(%m) of %u",
                              4, 40},
                             *random);
  CHECK(quality.rows.leastMass == doctest::Approx(1));
  CHECK(quality.rows.relativeError == doctest::Approx(0));
  Quality plain = measured({windowOf(2, 0), 4, 40}, *random);
  Quality near = measured(
      {"%m = attn.window [2, 0]\n %s = attn.scaled\n %t = attn.alibi %s\n attn.softmax union(%m) of %t", 4, 40},
      *random);
  CHECK(near.rows.meanMass > plain.rows.meanMass); // what alibi weighs is near
}

TEST_CASE("long sequences: sampled rows, blocks of positions") {
  Quality quality = measured({windowOf(256, 0), 1, 4096});
  CHECK(quality.rows.rows == views::kMostSampledRows);
  CHECK(quality.rows.rowsInAll == 4096);
  CHECK(quality.depth.nodeSize == 2);
  CHECK(quality.depth.closure.layers == 16); // ceil(4095 / 256), and ceil(2047 / 128) of blocks
  CHECK(views::qualityText("x", 0, quality).find("256 of 4,096, one from each of as many equal runs, seed 0") !=
        std::string::npos);
  CHECK(views::qualityText("x", 0, quality).find("at least 16 layers") != std::string::npos);
}

TEST_CASE(
    "fewer rows of longer sequences are sampled, or as many as asked for, and the same rows give the same numbers") {
  auto file = PatternFile::parse(std::string("attn.pattern @p() {\n") + windowOf(256, 0) + "\n}", "test");
  REQUIRE(file.isOk());
  const int64_t length = 16384, dim = 256;
  auto inputs = randomAttentionInputs({1, length, length, 1, 1, dim, dim}, DType::bf16, 1);
  REQUIRE(inputs.isOk());
  views::QualityRequest request{{1, length, length, 0, 0, {}}, {128, 128}, &*inputs, 0};
  request.pairs.mostPairs = 1;
  std::vector<double> shares;
  request.pairs.progress = [&](double share) { shares.push_back(share); };
  const Quality sampled = *views::measureQuality(**file, request);
  CHECK(sampled.rows.rows == views::kMostSampledProducts / (length * 3 * dim));
  CHECK(sampled.depth.whyNot == "more than 1 pairs would have to be tried");
  REQUIRE(!shares.empty());
  CHECK(shares.back() == 1);
  request.mostRows = 5;
  CHECK((*views::measureQuality(**file, request)).rows.rows == 5);
}

TEST_CASE("imbalance of query tiles") {
  Quality causal = measured({kCausal, 2, 1024});
  CHECK(causal.balance.queryTiles == 16);
  CHECK(causal.balance.most == 8);
  CHECK(causal.balance.mean == doctest::Approx(4.5));
  CHECK(measured({kFull, 1, 1024}).balance.imbalance() == doctest::Approx(1));
}

TEST_CASE("heads that are alike are looked at once") {
  const Quality one = measured({kCausal, 1, 256, 64}), many = measured({kCausal, 16, 256, 64});
  CHECK(one.depth.rowsRead == 256);
  CHECK(many.depth.rowsRead == 256);
  CHECK(many.depth.closure.layers == one.depth.closure.layers);
  CHECK(many.balance.tilesSeen == 4);
  CHECK(many.balance.queryTiles == 16 * 4);
  CHECK(many.balance.mean == one.balance.mean);
}

TEST_CASE("queries that are not the keys have no depth") {
  Quality quality = measured({kFull, 1, 8, 128, 24});
  CHECK(quality.depth.whyNot == "queries and keys are not the same positions");
  CHECK(quality.rows.meanMass == doctest::Approx(1));
}

TEST_CASE("empty problems") {
  Quality quality = measured({kFull, 1, 0});
  CHECK(quality.rows.rows == 0);
  CHECK(quality.depth.closure.layers == 1);
  CHECK(quality.balance.imbalance() == doctest::Approx(1));
}

TEST_CASE("inputs beyond the limit are refused with the way out") {
  Status status = views::checkQualitySizes({1, 1 << 20, 1 << 20, 8, 8, 128, 128});
  CHECK(status.message() == "expected q, k and v of at most 134217728 elements for --quality, got 1073741824; fewer "
                            "heads or channels may do");
  CHECK(views::checkQualitySizes({1, 1 << 20, 1 << 20, 1, 1, 128, 128}).isOk());
}

TEST_CASE("closure over more than a word of nodes") {
  const int32_t nodes = 130;
  AttentionGraph chain(nodes), ring(nodes), star(nodes);
  for (int32_t i = 0; i < nodes; ++i) {
    if (i > 0)
      chain[i] = {i - 1};
    ring[i] = {(i + nodes - 1) % nodes};
    star[i] = {0};
    star[0].push_back(i);
  }
  CHECK(views::closureDepth(chain, true).layers == nodes - 1);
  CHECK_FALSE(views::closureDepth(chain, false).layers.has_value());
  CHECK(views::closureDepth(chain, false).connected == doctest::Approx((nodes + 1) / (2.0 * nodes)));
  CHECK(views::closureDepth(ring, false).layers == nodes - 1);
  CHECK(views::closureDepth(star, false).layers == 2);
}
